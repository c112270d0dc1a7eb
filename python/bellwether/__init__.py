"""Trading signals and news scores as research data you can trust, in one line.

>>> import bellwether as bw
>>> summary = bw.run("demo", progress=False)
>>> frame = bw.load("demo").to_polars()

`get` asks a service now; `run` fetches and publishes; `load` reads a published version, or builds one as of an instant from the archive without writing
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
from ._bellwether import __version__
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
from ._now import Now, get
from ._progress import BellwetherWarning, Event
from ._publish import Summary, build, run
from ._table import Answer, Skill, Table
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
    "Now",
    "Problem",
    "Report",
    "ServiceError",
    "Skill",
    "StorageError",
    "Summary",
    "Table",
    "TemporaryError",
    "UsageError",
    "Wide",
    "__version__",
    "articles",
    "audit_table",
    "build",
    "check",
    "datasets",
    "demo_prices",
    "diff",
    "get",
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
