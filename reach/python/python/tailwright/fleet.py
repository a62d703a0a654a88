"""Fleets: burst curves of many workloads from tables of any size, and plans of them cell by cell.

:func:`curves_by_workload` takes a table of requests of many workloads and leaves a few hundred bytes of each: a table of
streams. It runs on Spark, or here on Polars, pandas, Arrow and Parquet; the answers are the same bits.
:func:`plan_in_cells` plans more workloads than one plan should have.

Needs pyarrow; Spark needs 3.3 or later, and this package on its executors.
"""

from __future__ import annotations

import functools
import itertools
import os
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple, Union

import numpy as np

try:
    import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]
except ImportError as error:
    raise ImportError("tailwright.fleet needs pyarrow: pip install pyarrow") from error

from ._cells import Cell, FleetPlan, plan_in_cells
from ._cluster import PathLike
from ._errors import InputError
from ._footprint import Device
from ._streams import SCHEMA, Columns, Stream, merged, streams_of_partition

__all__ = ["Cell", "FleetPlan", "Stream", "curves_by_workload", "plan_in_cells", "streams"]

_SPARK_SCHEMA = "workload string, stream binary"
#: Streams in a batch of Arrow, so that a batch has some megabytes.
_BATCH = 1024
#: Column of the pieces of a table.
_PIECE = "tailwright piece"
_REFUSED = "tailwright._errors.InputError: "


def curves_by_workload(
    table: Any,
    *,
    workload: str = "workload",
    time: str = "time",
    work: Optional[str] = None,
    size: Optional[str] = None,
    op: Optional[str] = None,
    storage: Optional[Union[Device, PathLike]] = None,
    unit: Optional[str] = None,
    shuffle: bool = False,
) -> Any:
    """Computes the stream of every workload of a table of requests.

    Args:
        table: A DataFrame of Spark, Polars or pandas, a LazyFrame, a table, reader or dataset of Arrow, or the name of
            a Parquet file or of a folder of them.
        workload: Column of names, as text or whole numbers.
        time: Column of arrivals: timestamps, seconds as real numbers, or nanoseconds as whole numbers.
        work: Column of work in any unit, for burst curves.
        size: Column of bytes, for footprints; with ``storage``, in place of ``work``.
        op: With ``size``: column of ``"read"`` and ``"write"``, or of booleans that are true for writes; default: all
            are reads.
        storage: With ``size``: device profile or its file, which is read here and not on executors.
        unit: Unit of ``time`` where it has another one: ``"s"``, ``"ms"``, ``"us"`` or ``"ns"``.
        shuffle: Sort the table by workload and time first. Without it, rows may be in any order within a file (of a
            large one, within the part that Spark reads at a time) or a partition without files. Those that have a
            workload must follow each other in time, as files by hour do; ones that overlap are refused. With it, any
            table will do. On Spark, ranges of workload and time spread a
            workload that has most of the rows over all executors. Elsewhere the whole table is in memory.

    Returns:
        Table with the columns ``workload`` (text) and ``stream`` (bytes, for :meth:`Stream.from_bytes`), a row for each
        workload: a lazy DataFrame of Spark for one of Spark, else a table of Arrow in the order of the names.
        :func:`streams` reads it.

    Raises:
        InputError: A column is absent, has missing values, or a type or value that is refused; or chunks of a
            workload overlap in time. On Spark, :func:`streams` raises those that depend on rows.
    """
    if (work is None) == (size is None):
        raise InputError("expected either work, or size and storage")
    if (size is None) != (storage is None):
        raise InputError("size and storage go together: the device decides what work a request of a size is")
    if op is not None and size is None:
        raise InputError("op goes with size")
    device = storage if storage is None or isinstance(storage, Device) else Device.read(storage)
    columns = Columns(workload, time, work, size, op, device, unit)
    if type(table).__module__.startswith("pyspark.sql"):
        return _by_spark(table, columns, shuffle)
    partitions = _partitions(table, columns.names())
    if shuffle:
        partitions = [pa.concat_tables(list(partitions)).sort_by([(workload, "ascending"), (time, "ascending")])]
    found: Dict[str, List[Stream]] = {}
    for partition in partitions:
        for name, stream in streams_of_partition([partition], columns):
            found.setdefault(name, []).append(stream)
    rows = [(name, merged(name, found[name])) for name in sorted(found)]
    return pa.Table.from_batches(list(_batches(rows)), schema=SCHEMA)


def streams(table: Any) -> Dict[str, Stream]:
    """Reads the table that :func:`curves_by_workload` returned, or a part of it.

    Returns:
        The stream of each workload, in the order of the names.

    Raises:
        InputError: The computation on Spark refuses rows of the table, or bytes are no stream.
    """
    if type(table).__module__.startswith("pyspark.sql"):
        try:
            rows = [(row["workload"], row["stream"]) for row in table.collect()]
        except Exception as error:
            refusal = _refusal(error)
            if refusal is None:
                raise
            raise refusal from error
    else:
        rows = list(zip(table["workload"].to_pylist(), table["stream"].to_pylist()))
    return {name: Stream.from_bytes(data) for name, data in sorted(rows)}


def _refusal(error: Exception) -> Optional[InputError]:
    """Returns the refusal that an executor reported; None if it is another error."""
    said = str(error)
    at = said.find(_REFUSED)
    return None if at < 0 else InputError(said[at + len(_REFUSED) :].split("\n")[0])


def _by_spark(table: Any, columns: Columns, shuffle: bool) -> Any:
    absent = [name for name in columns.names() if name not in table.columns]
    if absent:
        raise InputError(f"there is no column {absent[0]!r}: expected one of {', '.join(table.columns)}")
    names = [f"`{name}`" for name in columns.names()]
    if shuffle:
        chosen = table.select(*names)
        keys = [chosen[f"`{columns.workload}`"], chosen[f"`{columns.time}`"]]
        chosen = chosen.repartitionByRange(*keys).sortWithinPartitions(*keys)
    else:
        chosen = _with_pieces(table, names)
    parts = chosen.mapInArrow(functools.partial(_streams_of_batches, columns), _SPARK_SCHEMA)
    together = parts.repartition("workload").sortWithinPartitions("workload")
    return together.mapInArrow(_merged_batches, _SPARK_SCHEMA)


def _with_pieces(table: Any, names: List[str]) -> Any:
    """Adds a column that tells files, and parts of large ones, apart.

    Spark packs files into partitions by their size, so that those of a partition do not follow each other in time.
    """
    from pyspark.errors import AnalysisException  # type: ignore[import-not-found,unused-ignore]
    from pyspark.sql import functions  # type: ignore[import-not-found,unused-ignore]

    piece = functions.xxhash64(functions.input_file_name(), functions.input_file_block_start())
    try:
        return table.select(*names, piece.alias(_PIECE))
    except AnalysisException:
        # A join has no file of a row.
        return table.select(*names)


def _streams_of_batches(columns: Columns, batches: Iterable[Any]) -> Iterator[Any]:
    """Runs on executors, for each partition of requests."""

    def found() -> Iterator[Tuple[str, Stream]]:
        for _, tables in itertools.groupby(_pieces(batches), key=lambda piece: piece[0]):
            yield from streams_of_partition((table for _, table in tables), columns)

    return _batches(found())


def _pieces(batches: Iterable[Any]) -> Iterator[Tuple[int, Any]]:
    """Cuts batches where the piece changes."""
    for batch in batches:
        table = pa.Table.from_batches([batch])
        if _PIECE not in table.schema.names or table.num_rows == 0:
            yield 0, table
            continue
        pieces = table[_PIECE].to_numpy()
        table = table.drop_columns([_PIECE])
        begins = [0, *(np.flatnonzero(pieces[1:] != pieces[:-1]) + 1).tolist(), len(pieces)]
        for begin, end in zip(begins, begins[1:]):
            yield int(pieces[begin]), table.slice(begin, end - begin)


def _merged_batches(batches: Iterable[Any]) -> Iterator[Any]:
    """Runs on executors, for each partition of streams, in which those of a workload are neighbours."""
    return _batches(_merged_runs(batches))


def _merged_runs(batches: Iterable[Any]) -> Iterator[Tuple[str, Stream]]:
    current: Optional[str] = None
    run: List[Stream] = []
    for batch in batches:
        for name, data in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist()):
            if run and name != current:
                yield str(current), merged(str(current), run)
                run = []
            current = name
            run.append(Stream.from_bytes(data))
    if run:
        yield str(current), merged(str(current), run)


def _batches(rows: Iterable[Tuple[str, Stream]]) -> Iterator[Any]:
    names: List[str] = []
    data: List[bytes] = []
    for name, stream in rows:
        names.append(name)
        data.append(stream.to_bytes())
        if len(names) == _BATCH:
            yield pa.RecordBatch.from_pydict({"workload": names, "stream": data}, schema=SCHEMA)
            names, data = [], []
    if names:
        yield pa.RecordBatch.from_pydict({"workload": names, "stream": data}, schema=SCHEMA)


def _partitions(table: Any, names: List[str]) -> Iterable[Any]:
    """Returns tables of Arrow with these columns, one after the other."""
    if isinstance(table, (str, os.PathLike)):
        import pyarrow.dataset  # type: ignore[import-untyped,unused-ignore]

        try:
            table = pyarrow.dataset.dataset(os.fspath(table), format="parquet")
        except (OSError, pa.ArrowInvalid) as error:
            raise InputError(f"{os.fspath(table)}: {error}") from None
    if hasattr(table, "get_fragments") and hasattr(table, "schema"):
        _check(table.schema.names, names)
        schema = pa.schema([table.schema.field(name) for name in names])
        return (part.to_table(columns=names, schema=table.schema).cast(schema) for part in table.get_fragments())
    if isinstance(table, pa.RecordBatchReader):
        _check(table.schema.names, names)
        return [table.read_all().select(names)]
    if hasattr(table, "collect_schema") and hasattr(table, "collect"):
        _check(table.collect_schema().names(), names)
        return [table.select(names).collect().to_arrow()]
    if type(table).__module__.split(".")[0] == "pandas":
        _check(list(table.columns), names)
        return [pa.Table.from_pandas(table[names], preserve_index=False)]
    if hasattr(table, "to_arrow") and hasattr(table, "columns"):
        _check(list(table.columns), names)
        return [table.select(names).to_arrow()]
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    if not isinstance(table, pa.Table):
        raise InputError(f"a table is a {type(table).__name__}: expected Spark, Polars, pandas, Arrow or Parquet")
    _check(table.schema.names, names)
    return [table.select(names)]


def _check(columns: Iterable[str], names: List[str]) -> None:
    columns = list(columns)
    for name in names:
        if name not in columns:
            raise InputError(f"there is no column {name!r}: expected one of {', '.join(map(str, columns))}")
