-- The dataset from `signals` and `articles`, for DuckDB and dlt.
-- Features do not depend on period and regime, so they are computed once per ticker and day.

create table days as
select distinct ticker, date from signals;

create table windows as
with events as (
    select ticker, date, null::double as score, true as asked from days
    union all
    select ticker, date::timestamp, score, false from articles
)
select
    ticker, date, asked,
    count(score) over past as news_count_7d,
    avg(score) over past as news_mean_7d,
    min(score) over past as news_min_7d,
    max(score) over past as news_max_7d
from events
window past as (
    partition by ticker order by date
    range between interval 7 days preceding and interval 1 day preceding
)
qualify asked;

create table features as
with last as (
    -- If several articles have the same date, the first one listed is the last one.
    select ticker, date::timestamp as date, arg_min(score, place) as news_last_score
    from articles
    group by all
)
select w.* exclude (asked), l.news_last_score
from windows w
asof left join last l on w.ticker = l.ticker and w.date > l.date;

create view dataset as
select
    ticker, date, s.period, s.regime, s.signal, s.confidence,
    f.news_count_7d, f.news_mean_7d, f.news_min_7d, f.news_max_7d, f.news_last_score
from signals s
join features f using (ticker, date)
order by ticker, date, s.period, s.regime;
