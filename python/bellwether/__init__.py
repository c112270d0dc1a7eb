"""Trading signals and news scores as research data you can trust, in one line.

>>> import bellwether as bw
>>> summary = bw.run("demo", progress=False)
>>> frame = bw.load("demo").to_polars()

`run` fetches and publishes; `load` reads a published version, or builds one as of an instant from the archive without writing
a file. It returns an object with the Arrow C stream interface, which Polars, pandas, pyarrow and DuckDB read directly.
"""

from ._ask import (
    Catalog,
    Report,
    articles,
    audit_table,
    check,
    datasets,
    demo_prices,
    diff,
    history,
    quality,
    query,
    report,
    revisions,
    runs,
    sectors,
    skill,
    tickers,
)
from ._dataset import Dataset, load
from ._errors import (
    BellwetherError,
    ChecksError,
    DataError,
    DefinitionError,
    ForkedError,
    Interrupted,
    NotFoundError,
    Problem,
    ServiceError,
    StorageError,
    TemporaryError,
    UsageError,
)
from ._progress import BellwetherWarning, Event
from ._publish import Summary, build, run
from ._table import Answer, Table
from ._typed import DefinitionDict
from ._wide import Matrix, Wide

__all__ = [
    "Answer",
    "BellwetherError",
    "BellwetherWarning",
    "Catalog",
    "ChecksError",
    "DataError",
    "Dataset",
    "DefinitionDict",
    "DefinitionError",
    "Event",
    "ForkedError",
    "Interrupted",
    "Matrix",
    "NotFoundError",
    "Problem",
    "Report",
    "ServiceError",
    "StorageError",
    "Summary",
    "Table",
    "TemporaryError",
    "UsageError",
    "Wide",
    "articles",
    "audit_table",
    "build",
    "check",
    "datasets",
    "demo_prices",
    "diff",
    "history",
    "load",
    "quality",
    "query",
    "report",
    "revisions",
    "run",
    "runs",
    "sectors",
    "skill",
    "tickers",
]
