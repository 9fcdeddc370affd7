"""The native core of qwyc. Use the functions of the package instead."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, overload

import numpy
from numpy.typing import NDArray


class ColumnSlots:
    """The columns that trees look at."""

    def __init__(self, n_columns: int, used: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def __len__(self) -> int: ...

class SparseRows:
    """Rows of a sparse matrix, read where they lie."""

    @overload
    def __init__(self, data: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_columns: int, absent: float) -> None: ...

    @overload
    def __init__(self, data: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_columns: int, absent: float) -> None: ...

    @overload
    def __init__(self, data: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_columns: int, absent: float) -> None: ...

    @overload
    def __init__(self, data: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_columns: int, absent: float) -> None: ...

    def __len__(self) -> int: ...

    @property
    def shape(self) -> tuple[int, int]: ...

    @overload
    def __getitem__(self, rows: slice) -> SparseRows: ...

    @overload
    def __getitem__(self, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> SparseRows: ...

    def dense32(self, slots: ColumnSlots) -> NDArray[numpy.float32]:
        """(N, slots) float32: the columns in use, in Fortran order."""

    def dense64(self, slots: ColumnSlots) -> NDArray[numpy.float64]:
        """(N, slots) float64: the columns in use, in Fortran order."""

    def hashes32(self) -> Annotated[NDArray[numpy.uint64], dict(shape=(None,))]:
        """(N,) a hash of each row, by its values in float32."""

    def hashes64(self) -> Annotated[NDArray[numpy.uint64], dict(shape=(None,))]:
        """(N,) a hash of each row, by its values in float64."""

class Forest:
    """A tree ensemble, checked and laid out for evaluation."""

    @overload
    def __init__(self, node_begin: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], leaf_begin: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], feature: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], threshold: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], left: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], right: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], flags: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], category_begin: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], category_words: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], leaf_value: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], leaf_other: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], *, n_features: int, summation: int, less_equal: bool, truncates: bool, base: float, divisor: float, scale: float = 1.0) -> None: ...

    @overload
    def __init__(self, node_begin: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], leaf_begin: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], feature: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], threshold: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], left: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], right: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], flags: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], category_begin: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], category_words: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], leaf_value: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], leaf_other: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], *, n_features: int, summation: int, less_equal: bool, truncates: bool, base: float, divisor: float, scale: float = 1.0) -> None: ...

    @property
    def expected_cost(self) -> float:
        """
        Nanoseconds that a full score takes, one row of many, by the cost model.
        """

    @property
    def n_walked(self) -> int:
        """
        Trees that are walked node by node, not compared for many rows at once.
        """

    @overload
    def score_matrix(self, rows: Annotated[NDArray[numpy.float32], dict(shape=(None, None), device='cpu', writable=False)], threads: int, isa: str = '') -> tuple[Annotated[NDArray[numpy.float32], dict(shape=(None, None))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]: ...

    @overload
    def score_matrix(self, rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu', writable=False)], threads: int, isa: str = '') -> tuple[Annotated[NDArray[numpy.float32], dict(shape=(None, None))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
        """
        (T, N) scores by base model and (N,) full scores of rows (N, n_features).
        """

    @overload
    def score_full(self, rows: Annotated[NDArray[numpy.float32], dict(shape=(None, None), device='cpu', writable=False)], threads: int, isa: str = '') -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...

    @overload
    def score_full(self, rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu', writable=False)], threads: int, isa: str = '') -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """(N,) full scores of rows (N, n_features)."""

    @overload
    def count_path(self, rows: Annotated[NDArray[numpy.float32], dict(shape=(None, None), device='cpu', writable=False)], order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], lower: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], upper: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], threshold: float, with_wrong: bool, threads: int, isa: str = '') -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None, None))], Annotated[NDArray[numpy.int64], dict(shape=(None, None))], Annotated[NDArray[numpy.uint64], dict(shape=(None, None))]]: ...

    @overload
    def count_path(self, rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu', writable=False)], order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], lower: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], upper: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], threshold: float, with_wrong: bool, threads: int, isa: str = '') -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None, None))], Annotated[NDArray[numpy.int64], dict(shape=(None, None))], Annotated[NDArray[numpy.uint64], dict(shape=(None, None))]]:
        """
        (N,) full scores of rows (N, n_features), and what `count_path` says about their scores.
        """

    @overload
    def mean_path_lengths(self, rows: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...

    @overload
    def mean_path_lengths(self, rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """(T,) mean number of nodes that rows visit in each tree."""

    @overload
    def measure_seconds(self, rows: Annotated[NDArray[numpy.float32], dict(shape=(None, None), device='cpu', writable=False)], repeats: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...

    @overload
    def measure_seconds(self, rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu', writable=False)], repeats: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """(T,) median seconds that each tree takes for a row here."""

    def score_matrix_sparse(self, rows: SparseRows, slots: ColumnSlots, threads: int) -> tuple[Annotated[NDArray[numpy.float32], dict(shape=(None, None))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
        """(T, N) scores by base model and (N,) full scores of sparse rows."""

    def score_full_sparse(self, rows: SparseRows, slots: ColumnSlots, threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """(N,) full scores of sparse rows."""

class Lattices:
    """Lattices and calibrators, checked and laid out for evaluation."""

    @overload
    def __init__(self, calibrator_kind: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], calibrator_feature: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], point_begin: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], point: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], output: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], has_missing: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], missing_value: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], missing_output: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], other_output: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], interpolation: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], input_begin: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], input: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], size: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], vertex_begin: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], vertex: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], *, n_features: int, base: float) -> None: ...

    @overload
    def __init__(self, calibrator_kind: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], calibrator_feature: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], point_begin: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], point: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], output: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], has_missing: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], missing_value: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], missing_output: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], other_output: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], interpolation: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], input_begin: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], input: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], size: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], vertex_begin: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], vertex: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], *, n_features: int, base: float) -> None: ...

    @property
    def base(self) -> float:
        """What running sums start from."""

    @property
    def total(self) -> float:
        """No partial sum exceeds it, in absolute value."""

    def bounds(self) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
        """(T,) the least and (T,) the most that each base model can add."""

    def operations(self) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
        """
        Operations for a row: (T,) of each base model, (C,) of each calibrator.
        """

    @overload
    def score_matrix(self, rows: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], threads: int, isa: str = '') -> tuple[Annotated[NDArray[numpy.float32], dict(shape=(None, None))] | Annotated[NDArray[numpy.float64], dict(shape=(None, None))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]: ...

    @overload
    def score_matrix(self, rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], threads: int, isa: str = '') -> tuple[Annotated[NDArray[numpy.float32], dict(shape=(None, None))] | Annotated[NDArray[numpy.float64], dict(shape=(None, None))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
        """(T, N) what each base model adds for each row, and (N,) full scores."""

    @overload
    def score_full(self, rows: Annotated[NDArray[numpy.float32], dict(shape=(None, None), device='cpu', writable=False)], threads: int, isa: str = '') -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...

    @overload
    def score_full(self, rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu', writable=False)], threads: int, isa: str = '') -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """(N,) full scores."""

    @overload
    def measure_seconds(self, rows: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], repeats: int) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]: ...

    @overload
    def measure_seconds(self, rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], repeats: int) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
        """
        Median seconds for a row here: (T,) of each base model, (C,) of each calibrator.
        """

class TextCodes:
    """The codes of categories that are text."""

    def __init__(self, texts: Sequence[str], codes: Sequence[float], unseen: float, null: float, isa: str = '') -> None:
        """
        Other texts have the code `unseen`; infinity: they are refused. isa: one of `available_isas`, by default the best.
        """

class PositionCodes:
    """The codes of positions in a list of categories."""

    @overload
    def __init__(self, texts: TextCodes, stream: object) -> None:
        """
        stream: an Arrow stream of the categories, one array of text without nulls.
        """

    @overload
    def __init__(self, codes: Sequence[float]) -> None:
        """They end with the code of a null; infinity: refused."""

class ArrowColumns:
    """Features whose columns an Arrow stream may hold."""

    def __init__(self, features: Sequence[int], texts: Sequence[TextCodes | None]) -> None:
        """texts: the codes of the texts of each feature; None: it takes numbers."""

class TakenColumns:
    """What features take of the columns of pandas frames."""

    def __init__(self, features: Sequence[int], numbers: Sequence[bool], objects: Sequence[bool], arrow: Sequence[bool], texts: Sequence[TextCodes | None], arrow_types: set[type]) -> None:
        """
        features: the feature that takes each column of the frame, or -1. numbers, objects, arrow: whether it takes NumPy's numbers, Python objects, and arrays of Arrow. texts: the codes of its texts, or None. arrow_types: types of pandas' arrays that hold Arrow's.
        """

    def keep_codes(self, feature: int, type: type, categories: object, codes: PositionCodes) -> None:
        """
        The codes of a pandas Index of categories. Arrays of this type that have it are read from now on.
        """

class TableShape:
    """Which values of each column are refused."""

    def __init__(self, refuses_nan: Sequence[bool], missing: float, refuses_infinity: bool, refuses_large_integers: bool, single: bool) -> None:
        """
        refuses_nan: one entry per feature. missing: a number that means missing. Large integers are those past 2**53. single: values become float32, otherwise float64.
        """

class Table:
    """Columns of a table, read where they lie."""

    def __init__(self, n_rows: int, shape: TableShape) -> None: ...

    def __len__(self) -> int: ...

    def leave_out(self, features: Sequence[int]) -> None:
        """Columns that need not be read: their values are 0."""

    def add_numbers(self, feature: int, values: NDArray[numpy.generic], null: NDArray[numpy.bool_] | None = None) -> None:
        """The numbers of a feature, (N,), and which of them are null."""

    def add_codes(self, feature: int, positions: NDArray[numpy.generic], codes: PositionCodes) -> None:
        """The categories of a feature, as positions (N,) of `codes`."""

    def add_arrow(self, stream: object, columns: ArrowColumns, one: bool, positions: Sequence[PositionCodes | None] = []) -> list[int]:
        """
        The columns of an Arrow stream, one for each feature, or one only. Columns with `positions` are integers, the positions of categories. Returns the features whose columns have a type that is not read here.
        """

    def add_row(self, values: tuple[object, ...], columns: ArrowColumns) -> bool:
        """
        The values of the only row, one for each feature. False where one is neither a number nor text that is taken: the row is then to be added in another way.
        """

    def add_objects(self, feature: int, objects: NDArray[numpy.generic], texts: TextCodes) -> bool:
        """
        Categories as Python objects, (N,). False where one is neither text nor missing.
        """

    def add_blocks(self, blocks: Sequence[object], taken: TakenColumns) -> list[tuple[int, Any]] | None:
        """
        The columns in the blocks of a pandas frame that need no conversion. Returns the other columns that are needed, as position and array; None if the blocks are not as they are known to be.
        """

    def matrix32(self, threads: int) -> Annotated[NDArray[numpy.float32], dict(shape=(None, None))] | None:
        """(n_features, N) float32, or None where a value is refused."""

    def matrix64(self, threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None))] | None:
        """(n_features, N) float64, or None where a value is refused."""

class Quitter:
    """Base models laid out for one policy."""

    @overload
    def __init__(self, base_models: Forest, order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], lower: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], upper: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], threshold: float, survival: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> None: ...

    @overload
    def __init__(self, base_models: Lattices, order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], lower: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], upper: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], threshold: float, survival: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> None: ...

    @property
    def expected_cost(self) -> float | None:
        """
        Nanoseconds that a decision takes, one row of many, by the cost model; None for lattices.
        """

    @overload
    def decide(self, rows: Annotated[NDArray[numpy.float32], dict(shape=(None, None), device='cpu', writable=False)], threads: int, isa: str = '') -> tuple[Annotated[NDArray[numpy.uint8], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]: ...

    @overload
    def decide(self, rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu', writable=False)], threads: int, isa: str = '') -> tuple[Annotated[NDArray[numpy.uint8], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
        """
        (N,) positive, steps and score of rows (N, n_features), quitting early.
        """

    def decide_table(self, table: Table, threads: int) -> tuple[Annotated[NDArray[numpy.uint8], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]] | None:
        """(N,) positive, steps and score of the rows of a table."""

    def decide_sparse(self, rows: SparseRows, slots: ColumnSlots, threads: int) -> tuple[Annotated[NDArray[numpy.uint8], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
        """(N,) positive, steps and score of sparse rows."""

class FanQuitter:
    """Base models laid out for thresholds by step and bin."""

    @overload
    def __init__(self, base_models: Forest, order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], bin_begin: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], bin: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], lower: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], upper: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], bin_width: float, threshold: float) -> None: ...

    @overload
    def __init__(self, base_models: Lattices, order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], bin_begin: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], bin: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], lower: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], upper: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], bin_width: float, threshold: float) -> None: ...

    @overload
    def decide(self, rows: Annotated[NDArray[numpy.float32], dict(shape=(None, None), device='cpu', writable=False)], threads: int, isa: str = '') -> tuple[Annotated[NDArray[numpy.uint8], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]: ...

    @overload
    def decide(self, rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu', writable=False)], threads: int, isa: str = '') -> tuple[Annotated[NDArray[numpy.uint8], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
        """
        (N,) positive, steps and score of rows (N, n_features), quitting early.
        """

    def decide_table(self, table: Table, threads: int) -> tuple[Annotated[NDArray[numpy.uint8], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]] | None:
        """(N,) positive, steps and score of the rows of a table."""

    def decide_sparse(self, rows: SparseRows, slots: ColumnSlots, threads: int) -> tuple[Annotated[NDArray[numpy.uint8], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
        """(N,) positive, steps and score of sparse rows."""

def decide_classes(full: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], kind: int, scale: float) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
    """(N,) the class that full scores (N, K) decide."""

def class_probabilities(full: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], kind: int, scale: float, threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None))]:
    """(N, K) what the source compares, of full scores (N, K)."""

class ClassForest:
    """Trees of K classes, checked and laid out for evaluation."""

    @overload
    def __init__(self, node_begin: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], leaf_begin: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], feature: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], threshold: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], left: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], right: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], flags: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], category_begin: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], category_words: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], leaves: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], tree_class: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], step_begin: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], start: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], *, n_features: int, summation: int, less_equal: bool, truncates: bool, divisor: float, ties: int, ties_scale: float, scale: float = 1.0) -> None: ...

    @overload
    def __init__(self, node_begin: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], leaf_begin: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], feature: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], threshold: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], left: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], right: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], flags: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], category_begin: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], category_words: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], leaves: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], tree_class: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], step_begin: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], start: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], *, n_features: int, summation: int, less_equal: bool, truncates: bool, divisor: float, ties: int, ties_scale: float, scale: float = 1.0) -> None: ...

    @property
    def expected_cost(self) -> float:
        """Nanoseconds that full scores take, one row of many, by the cost model."""

    @overload
    def score_matrix(self, rows: Annotated[NDArray[numpy.float32], dict(shape=(None, None), device='cpu', writable=False)], threads: int, isa: str = '') -> tuple[Annotated[NDArray[numpy.float32], dict(shape=(None, None, None))], Annotated[NDArray[numpy.float64], dict(shape=(None, None))]]: ...

    @overload
    def score_matrix(self, rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu', writable=False)], threads: int, isa: str = '') -> tuple[Annotated[NDArray[numpy.float32], dict(shape=(None, None, None))], Annotated[NDArray[numpy.float64], dict(shape=(None, None))]]:
        """
        (R, N, K) scores by base model and (N, K) full scores of rows (N, n_features).
        """

    @overload
    def score_full(self, rows: Annotated[NDArray[numpy.float32], dict(shape=(None, None), device='cpu', writable=False)], threads: int, isa: str = '') -> Annotated[NDArray[numpy.float64], dict(shape=(None, None))]: ...

    @overload
    def score_full(self, rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu', writable=False)], threads: int, isa: str = '') -> Annotated[NDArray[numpy.float64], dict(shape=(None, None))]:
        """(N, K) full scores of rows (N, n_features)."""

    def score_matrix_sparse(self, rows: SparseRows, slots: ColumnSlots, threads: int) -> tuple[Annotated[NDArray[numpy.float32], dict(shape=(None, None, None))], Annotated[NDArray[numpy.float64], dict(shape=(None, None))]]:
        """(R, N, K) scores by base model and (N, K) full scores of sparse rows."""

    def score_full_sparse(self, rows: SparseRows, slots: ColumnSlots, threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None))]:
        """(N, K) full scores of sparse rows."""

class LeadQuitter:
    """Trees of K classes laid out for a policy on leads."""

    def __init__(self, forest: ClassForest, order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], lead: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], drop: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], survival: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, only: int = -1) -> None: ...

    @property
    def expected_cost(self) -> float:
        """Nanoseconds that a decision takes, one row of many, by the cost model."""

    @overload
    def decide(self, rows: Annotated[NDArray[numpy.float32], dict(shape=(None, None), device='cpu', writable=False)], threads: int, scores: bool = True, isa: str = '') -> tuple[Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None, None))]]: ...

    @overload
    def decide(self, rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu', writable=False)], threads: int, scores: bool = True, isa: str = '') -> tuple[Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None, None))]]:
        """
        (N,) indices of classes and steps, and (N, K) scores, of rows (N, n_features), quitting early; (0, K) scores where none are wanted.
        """

    def decide_sparse(self, rows: SparseRows, slots: ColumnSlots, threads: int) -> tuple[Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None, None))]]:
        """The same for sparse rows."""

    def decide_table(self, table: Table, threads: int) -> tuple[Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None, None))]] | None:
        """The same for the rows of a table; None if a value is refused."""

class Combinations:
    """CatBoost's statistics of combinations of categories."""

    def __init__(self, code_begin: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], code_hash: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], is_category: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], part_begin: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], part_kind: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], part_feature: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], part_value: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], table_of: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], key_begin: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], key: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], column_table: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], value_begin: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], value: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def expand(self, rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu', writable=False)], threads: int) -> Annotated[NDArray[numpy.float32], dict(shape=(None, None))]:
        """
        (N, n_features + D) float32: rows (N, n_features), and a column for each statistic.
        """

def apply_output(scores: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], kind: int, scale: float, threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
    """(N,) what the source gives for full scores (N,)."""

class PickedRows:
    """Copies of rows that were picked at random."""

    def __init__(self, rate: float, seed: int, n_features: int, most: int, wide: bool) -> None: ...

    @overload
    def keep(self, rows: Annotated[NDArray[numpy.float32], dict(shape=(None, None), device='cpu', writable=False)], decided: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], steps: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> bool:
        """Keep rows that were picked already. True when `most` wait."""

    @overload
    def keep(self, rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu', writable=False)], decided: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], steps: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> bool: ...

    def pick(self, n: int) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))] | None:
        """
        Count n more rows. Returns those of them that are picked, ascending; None: none is.
        """

    def drain(self) -> tuple[Annotated[NDArray[numpy.float32], dict(shape=(None, None))], Annotated[NDArray[numpy.uint8], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))]] | tuple[Annotated[NDArray[numpy.float64], dict(shape=(None, None))], Annotated[NDArray[numpy.uint8], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))]]:
        """The waiting rows, their decisions and steps."""

    @property
    def taken(self) -> int:
        """How many rows were counted."""

def watched(quitter: Quitter, picked: object, on_full: object) -> Quitter:
    """
    A quitter whose rows are counted, and copied where they are picked. When enough of them wait, `on_full(threads)` is called.
    """

class RateTest:
    """Whether rows differ more often than allowed."""

    def __init__(self, share: float, multiples: Sequence[float], start_every: int, tail: float, from_first_row: float, apart: float, joint: float, largest: float) -> None: ...

    def advance(self, state: tuple[int, int, Sequence[float], float, Sequence[float], float, bool], differs: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], needed: float) -> tuple[tuple[int, int, list[float], float, list[float], float, bool], int]:
        """
        The state after more rows, and after how many of them the evidence first was at least `needed`, or -1.
        """

    def evidence(self, state: tuple[int, int, Sequence[float], float, Sequence[float], float, bool]) -> float:
        """The evidence against the share."""

class RunningJudge:
    """Counts checked rows and tests limits with them."""

    def __init__(self, limits: Sequence[tuple[int, int, RateTest]], bin: Sequence[int], cost: Sequence[float], needed: float) -> None: ...

    def get(self) -> tuple[list[int], list[int], list[int], int, float, list[tuple[int, int, list[float], float, list[float], float, bool] | None], list[int | None]]:
        """The state."""

    def set(self, state: tuple[Sequence[int], Sequence[int], Sequence[int], int, float, Sequence[tuple[int, int, Sequence[float], float, Sequence[float], float, bool] | None], Sequence[int | None]]) -> None:
        """Go on from a state."""

    def add(self, decided: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], full: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], steps: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """Count rows, (N,) each, one by one in their order."""

class Checker:
    """Checks the rows that wait."""

    def __init__(self, quitter: Quitter, picked: object, judge: object, threshold: float) -> None: ...

    def check(self, threads: int, all: bool) -> None:
        """
        Evaluate waiting rows in full and judge them: all, or as many as are evaluated together without a remainder. They wait no longer, also where that fails.
        """

    @property
    def rows(self) -> int:
        """Rows of the last check."""

    @property
    def left(self) -> int:
        """Those of them that it did not judge, since it failed."""

class OneRow:
    """Decides one row at a time."""

    def __init__(self, quitter: Quitter, negative: object, positive: object, fallback: object, plain_row: object, finite_only: bool, max_exact_integer: int) -> None: ...

    def predict(self, row: object | None) -> object:
        """The class of one row, (n_features,)."""

class ClassOneRow:
    """Decides one row at a time among K classes."""

    def __init__(self, quitter: LeadQuitter, labels: list[Any], fallback: object, plain_row: object, finite_only: bool, max_exact_integer: int) -> None: ...

    def predict(self, row: object | None) -> object:
        """The class of one row, (n_features,)."""

class SampledOneRow:
    """Decides one row at a time and keeps copies of picked rows."""

    def __init__(self, one: OneRow, picked: object, on_other: object, on_full: object) -> None: ...

    def predict(self, row: object | None) -> object:
        """The class of one row, (n_features,)."""

class OneValue:
    """Evaluates one row at a time in full."""

    def __init__(self, quitter: Quitter, kind: int, scale: float, finish: object | None, fallback: object, plain_row: object, finite_only: bool, max_exact_integer: int) -> None: ...

    def predict(self, row: object | None) -> object:
        """The value of one row, (n_features,)."""

class ClassOneValue:
    """Evaluates one row at a time in full."""

    def __init__(self, quitter: LeadQuitter, kind: int, scale: float, finish: object | None, fallback: object, plain_row: object, finite_only: bool, max_exact_integer: int) -> None: ...

    def predict(self, row: object | None) -> object:
        """The value of one row, (n_features,)."""

class PlainArrays:
    """Decides NumPy arrays that need no conversion, and tables."""

    def __init__(self, quitter: Quitter, classes: object, are_objects: bool, n_models: int, finite_only: bool, most_rows: int, numpy: object, decisions: object, thread_count: object) -> None: ...

    def predict(self, x: object | None, threads: object | None) -> object:
        """
        The class of every row, (N,); None where x needs more than a look at its numbers.
        """

    def decide(self, x: object | None, threads: object | None) -> object:
        """The decisions; None in the same cases."""

class FanPlainArrays:
    """Decides NumPy arrays that need no conversion, and tables."""

    def __init__(self, quitter: FanQuitter, classes: object, are_objects: bool, n_models: int, finite_only: bool, most_rows: int, numpy: object, decisions: object, thread_count: object) -> None: ...

    def predict(self, x: object | None, threads: object | None) -> object:
        """
        The class of every row, (N,); None where x needs more than a look at its numbers.
        """

    def decide(self, x: object | None, threads: object | None) -> object:
        """The decisions; None in the same cases."""

class ClassPlainArrays:
    """Decides NumPy arrays that need no conversion, and tables."""

    def __init__(self, quitter: LeadQuitter, classes: object, are_objects: bool, n_models: int, finite_only: bool, most_rows: int, numpy: object, decisions: object, thread_count: object) -> None: ...

    def predict(self, x: object | None, threads: object | None) -> object:
        """
        The class of every row, (N,); None where x needs more than a look at its numbers.
        """

    def decide(self, x: object | None, threads: object | None) -> object:
        """The decisions; None in the same cases."""

@overload
def gram(values: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], centre: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, scale: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None))]: ...

@overload
def gram(values: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], centre: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, scale: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None))]:
    """
    (T, T) inner products of base models (T, N), less centre (T,), times scale (N,) per row.
    """

@overload
def apply_fan(values: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], base: float, full: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], bin_begin: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], bin: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], lower: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], upper: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], bin_width: float, threshold: float, threads: int) -> tuple[Annotated[NDArray[numpy.uint8], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]: ...

@overload
def apply_fan(values: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], base: float, full: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], bin_begin: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], bin: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], lower: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], upper: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], bin_width: float, threshold: float, threads: int) -> tuple[Annotated[NDArray[numpy.uint8], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
    """As apply_policy, with thresholds by step and bin of the running sum."""

@overload
def apply_policy(values: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], base: float, full: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], lower: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], upper: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], threshold: float, threads: int) -> tuple[Annotated[NDArray[numpy.uint8], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]: ...

@overload
def apply_policy(values: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], base: float, full: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], lower: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], upper: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], threshold: float, threads: int) -> tuple[Annotated[NDArray[numpy.uint8], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
    """
    (N,) positive, steps and score from scores (T, N) that are known already.
    """

@overload
def count_path(values: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], base: float, full: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], lower: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], upper: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], threshold: float, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, with_wrong: bool, threads: int, isa: str = '') -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None, None))], Annotated[NDArray[numpy.int64], dict(shape=(None, None))], Annotated[NDArray[numpy.uint64], dict(shape=(None, None))]]: ...

@overload
def count_path(values: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], base: float, full: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], lower: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], upper: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], threshold: float, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, with_wrong: bool, threads: int, isa: str = '') -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None, None))], Annotated[NDArray[numpy.int64], dict(shape=(None, None))], Annotated[NDArray[numpy.uint64], dict(shape=(None, None))]]:
    """
    What K policies along one order do over scores (T, N) that are known already, or over some rows of them: (K, T) rows by the steps that they took, (K, 2) differences and, if asked for, (n, ceil(K / 63)) the policies that decide a row differently, a bit each.
    """

@overload
def fit_thresholds(values: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], base: float, positive: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], costs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], parts: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], need_begin: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], need: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], budget: int, quit_negative: bool, quit_positive: bool, split_budget: bool, threads: int, progress: Callable[[int], None]) -> tuple[Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]: ...

@overload
def fit_thresholds(values: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], base: float, positive: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], costs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], parts: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], need_begin: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], need: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], budget: int, quit_negative: bool, quit_positive: bool, split_budget: bool, threads: int, progress: Callable[[int], None]) -> tuple[Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
    """
    Order (T,), lower (T,) and upper (T,) fitted on scores (T, N); an empty order is chosen by Algorithm 1. Base model t needs parts need[need_begin[t]:need_begin[t + 1]], which the first to need them pays for. `progress` is called with the number of steps done.
    """

@overload
def fan_order(values: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], base: float, full: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], costs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], parts: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], need_begin: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], need: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], threshold: float, gamma: float, bin_width: float, quit_negative: bool, quit_positive: bool, threads: int, progress: Callable[[int], None]) -> Annotated[NDArray[numpy.int32], dict(shape=(None,))]: ...

@overload
def fan_order(values: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], base: float, full: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], costs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], parts: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], need_begin: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], need: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], threshold: float, gamma: float, bin_width: float, quit_negative: bool, quit_positive: bool, threads: int, progress: Callable[[int], None]) -> Annotated[NDArray[numpy.int32], dict(shape=(None,))]:
    """
    Order (T,) by Algorithm 1 with Fan's rule, on scores (T, N); costs as in fit_thresholds. `progress` is called with the number of steps done.
    """

class StoppingFit:
    """Thresholds by optimal stopping; not thread-safe."""

    @overload
    def __init__(self, values: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], base: float, full: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], threshold: float, order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], costs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], quit_negative: bool, quit_positive: bool, *, fewest_rows: int, most_bins: int, rows_per_bin: int, pseudo_rows: float, trend_rows: float, forecast_share: float) -> None: ...

    @overload
    def __init__(self, values: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], base: float, full: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], threshold: float, order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], costs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], quit_negative: bool, quit_positive: bool, *, fewest_rows: int, most_bins: int, rows_per_bin: int, pseudo_rows: float, trend_rows: float, forecast_share: float) -> None: ...

    def sweep(self, penalty_negative: float, penalty_positive: float, threads: int) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))], int, int]:
        """(lower, upper, rows decided differently, base models of all rows)."""

@overload
def apply_leads(values: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], base: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], full: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], lead: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], drop: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], threads: int, only: int = -1) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None, None))]]: ...

@overload
def apply_leads(values: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], base: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], full: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], lead: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], drop: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], threads: int, only: int = -1) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None, None))]]:
    """
    (N,) labels and steps, and (N, K) scores, from scores (T, N, K) that are known already.
    """

@overload
def search_leads(values: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], base: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], winner: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], costs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], parts: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], need_begin: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], need: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], budget: int, threads: int, progress: Callable[[int], None]) -> tuple[Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]: ...

@overload
def search_leads(values: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], base: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], winner: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], costs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], parts: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], need_begin: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], need: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], budget: int, threads: int, progress: Callable[[int], None]) -> tuple[Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
    """
    Order (T,) and thresholds (T,) on the lead, fitted on scores (T, N, K); an empty order is chosen by Algorithm 1. Costs as in fit_thresholds.
    """

class LeadFit:
    """Thresholds on leads by optimal stopping; not thread-safe."""

    @overload
    def __init__(self, values: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], base: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], full: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], costs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], pool: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], threads: int, *, fewest_rows: int, most_bins: int, rows_per_bin: int, pseudo_rows: float, trend_rows: float, forecast_share: float) -> None: ...

    @overload
    def __init__(self, values: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], base: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], full: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], costs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], pool: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], threads: int, *, fewest_rows: int, most_bins: int, rows_per_bin: int, pseudo_rows: float, trend_rows: float, forecast_share: float) -> None: ...

    def sweep(self, penalty: float, threads: int) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None, None))], int, int]:
        """
        (thresholds (T, pools), rows decided differently, base models of all rows).
        """

class ToleranceFit:
    """Thresholds for outputs within a tolerance; not thread-safe."""

    @overload
    def __init__(self, values: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], base: float, full: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], start: float, width: float, low: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], high: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], costs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], *, fewest_rows: int, most_bins: int, rows_per_bin: int, pseudo_rows: float, trend_rows: float, forecast_share: float) -> None: ...

    @overload
    def __init__(self, values: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], base: float, full: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], start: float, width: float, low: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], high: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], costs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], *, fewest_rows: int, most_bins: int, rows_per_bin: int, pseudo_rows: float, trend_rows: float, forecast_share: float) -> None: ...

    def sweep(self, penalty: float, threads: int) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))], int, int]:
        """
        (lower, upper, rows off by more than the tolerance, base models of all rows).
        """

    def set_bounds(self, low: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], high: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """Other bounds of the full score, from the next sweep on."""

    def freeze(self, threads: int) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
        """
        Keep the forecasts as they are from now on, and return them: slope (T,), begin (T + 1,), knots and offsets.
        """

def estimate_scores(steps: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], score: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], slope: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], begin: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], knot: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], offset: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
    """
    (N,) full scores that are expected of rows that took `steps` and have the running sum `score`; complete rows keep theirs.
    """

def available_isas() -> list[str]:
    """Instruction sets that this machine can evaluate with, best first."""

def exp_f32(x: float) -> float:
    """e to the x in float32, as the C library rounds it."""

def log_f32(x: float) -> float:
    """The natural logarithm in float32, as the C library rounds it."""
