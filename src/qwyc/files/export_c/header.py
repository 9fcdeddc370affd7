"""The header, and the parts of the source that every family of base models shares."""

from __future__ import annotations

from qwyc.files.export_c import categories
from qwyc.files.export_c.program import Program, joined
from qwyc.files.export_c.text import block_comment, real_literal, strings
from qwyc.policy.filter_policy import FilterPolicy
from qwyc.promise.certified import Certified
from qwyc.rows.schema import Schema

_HEADER = """{about}#ifndef {guard}
#define {guard}

#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

#define {upper}_N_FEATURES {n_features}
#define {upper}_N_CLASSES {n_classes}
#define {upper}_N_MODELS {n_models}
{n_scores}#define {upper}_REFUSED (-1) /* the model refuses a value of the row */
#define {upper}_TABLE_BYTES {n_bytes} /* of constant tables, without names and categories */

typedef {real} {prefix}_real; /* of the values of a row */

extern const char *const {prefix}_class_names[{upper}_N_CLASSES];
{names}
/* The index of the class of a row of {upper}_N_FEATURES values, or {upper}_REFUSED. */
int {prefix}_predict_one(const {real} *row);

{decide}
{codes}#ifdef __cplusplus
}}
#endif

#endif
"""

_DECIDE = """/* The same. *steps becomes the number of base models that were evaluated, and
   {score} the full score{s} where all were, otherwise the running sum{s}. Either pointer may be null.
   Where a row is refused, *steps is 0 and scores are NAN. */
int {prefix}_decide_one(const {real} *row, int32_t *steps, double *score);
"""

_DECIDE_SMALL = """/* The same. *steps becomes the number of base models that were evaluated, 0 where a
   row is refused; the pointer may be null. */
int {prefix}_decide_one(const {real} *row, int32_t *steps);
"""

_SOURCE = """{about}#include "{header}"

{includes}
#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "decisions are exact only without -ffast-math and -ffinite-math-only"
#endif
#if !defined(FLT_EVAL_METHOD) || (FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 16)
#error "numbers must be computed in their own type: on 32-bit x86, use -msse2 -mfpmath=sse"
#endif
#if defined(__clang__) || !defined(__GNUC__)
#pragma STDC FP_CONTRACT OFF
#endif

typedef {real} real;

"""

_VALUE = """
static inline real value_of(const real *row, uint32_t feature) {{
    {body}
}}
"""

_AS_FLOAT = """
/* volatile: gcc 12 at -O3 leaves the rounding out where it converts two numbers at once to float and
   back to double */
static inline float as_float(double value) {
#if defined(__GNUC__) && !defined(__clang__)
    volatile float single = (float)value;
    return single;
#else
    return (float)value;
#endif
}
"""

_REFUSED = """
/* Whether the model refuses a value of the row. */
static int refused(const real *row) {{
{table}    uint32_t j;
    for (j = 0; j < {count}; ++j) {{
        const real x = value_of(row, {column});
        if ({tests}) return 1;
    }}
    return 0;
}}
"""

_PUBLIC = """
int {prefix}_decide_one(const {real} *row, int32_t *steps{score_argument}) {{
{refusal}    return decide(row, steps{score});
}}

int {prefix}_predict_one(const {real} *row) {{
    return {prefix}_decide_one(row, NULL{null});
}}
"""


def about(certified: Certified, program: Program, small: bool) -> str:
    """What the files are, as a comment."""
    ensemble, schema = certified.ensemble, _schema(certified)
    form = ", small form" if small else ""
    lines = [
        f"Written by qwyc{form}. Do not edit: export the classifier again.",
        "",
        f"Model: {ensemble.description}; digest {ensemble.digest}.",
        f"Stored: {program.how}. {program.n_bytes:,} bytes of tables; a call keeps about "
        f"{program.stack:,} bytes on the stack, and nothing else.",
        f"Certificate: {certified.certificate}",
        *_filter(certified),
        "",
        f"A row is {schema.n_features} values of {_real(schema)}: what fast.ensemble.matrix(X) holds.",
        *_refusals(schema),
        *categories.describe(schema),
        "",
        "Decisions, steps and scores equal those of Classifier.decide bit for bit. The calling thread must "
        "round to nearest and keep denormal numbers, as C programs do unless told otherwise. Functions "
        "have no state and may be called from many threads at once.",
    ]
    if program.uses_math:
        lines.append("Link with -lm.")
    return block_comment("\n".join(lines))


def _filter(certified: Certified) -> list[str]:
    policy = certified.policy
    if not isinstance(policy, FilterPolicy):
        return []
    name = certified.ensemble.classes[policy.only]
    return [
        f"A filter for class {name}, index {policy.only}: rows that are surely of another class quit "
        "early, with the best other class so far. All others get their full scores and the full decision."
    ]


def _schema(certified: Certified) -> Schema:
    schema = certified.ensemble.schema
    assert schema is not None  # see check_exportable
    return schema


def _real(schema: Schema) -> str:
    return "float" if schema.dtype == "float32" else "double"


def _refusals(schema: Schema) -> list[str]:
    lines = []
    if schema.missing == schema.missing:
        lines.append(f"NAN and {schema.missing!r} mean missing.")
    elif schema.accepts_missing:
        lines.append("NAN means missing.")
    if not schema.accepts_missing:
        lines.append("A row with NAN is refused, as the source library refuses it.")
    if schema.must_have and schema.accepts_missing:
        lines.append(f"NAN is refused in columns {', '.join(map(str, schema.must_have))}.")
    if not schema.accepts_infinity:
        lines.append("A row with an infinity is refused, as the source library refuses it.")
    return lines


def header(certified: Certified, program: Program, comment: str, prefix: str) -> str:
    """The text of the header."""
    schema, upper, ensemble = _schema(certified), prefix.upper(), certified.ensemble
    real, n_scores = _real(schema), ensemble.base_models.n_scores
    if program.has_score:
        many = n_scores > 1
        score = f"score[0] to score[{upper}_N_SCORES - 1]" if many else "*score"
        decide = _DECIDE.format(prefix=prefix, real=real, score=score, s="s" if many else "")
    else:
        decide = _DECIDE_SMALL.format(prefix=prefix, real=real)
    names = ""
    if schema.names is not None and schema.n_features:
        names = f"extern const char *const {prefix}_feature_names[{upper}_N_FEATURES];\n"
    codes = [declaration for declaration, _ in _codes(certified, program, prefix)]
    if codes:
        codes.insert(
            0,
            "/* The code of a category. Returns 1 and sets *code, or returns 0 where the model refuses the "
            "value.\n   A null pointer is missing. */\n",
        )
        codes.append("\n")
    return _HEADER.format(
        about=comment,
        guard=f"{upper}_H",
        upper=upper,
        prefix=prefix,
        real=real,
        n_features=schema.n_features,
        n_classes=len(ensemble.classes),
        n_models=ensemble.n_models,
        n_scores=f"#define {upper}_N_SCORES {n_scores}\n" if program.has_score else "",
        n_bytes=program.n_bytes,
        names=names,
        decide=decide,
        codes="".join(codes),
    )


def source(
    certified: Certified, program: Program, comment: str, prefix: str, header_name: str
) -> str:
    """The text of the source."""
    schema, ensemble = _schema(certified), certified.ensemble
    real = _real(schema)
    codes = [definition for _, definition in _codes(certified, program, prefix)]
    texts = [strings(f"{prefix}_class_names", [str(label) for label in ensemble.classes.tolist()])]
    if schema.names is not None and schema.n_features:
        texts.append(strings(f"{prefix}_feature_names", schema.names))
    includes = ["float.h", "math.h", "stddef.h"]
    if any("strcmp" in definition for definition in codes):
        includes.append("string.h")
    head = _SOURCE.format(
        about=comment,
        header=header_name,
        includes="".join(f"#include <{name}>\n" for name in includes),
        real=real,
    )
    refused = _refused(schema, real)
    refusal, scored = "", program.has_score
    if refused:
        clear = "        if (steps) *steps = 0;\n"
        if scored and ensemble.base_models.n_scores > 1:
            clear += "        if (score) {\n            uint32_t k;\n"
            clear += "            for (k = 0; k < N_SCORES; ++k) score[k] = NAN;\n        }\n"
        elif scored:
            clear += "        if (score) *score = NAN;\n"
        refusal = (
            f"    if (refused(row)) {{\n{clear}        return {prefix.upper()}_REFUSED;\n    }}\n"
        )
    public = _PUBLIC.format(
        prefix=prefix,
        real=real,
        score_argument=", double *score" if scored else "",
        score=", score" if scored else "",
        null=", NULL" if scored else "",
        refusal=refusal,
    )
    as_float = _AS_FLOAT if "as_float(" in program.code else ""
    parts = [_value_of(schema), refused, as_float, program.code, public, *codes, *texts]
    return head + program.tables + "\n" + joined(parts)


def _codes(certified: Certified, program: Program, prefix: str) -> list[tuple[str, str]]:
    schema = _schema(certified)
    return categories.functions(schema, prefix, _real(schema), not program.has_score)


def _value_of(schema: Schema) -> str:
    if schema.missing != schema.missing:
        return _VALUE.format(body="return row[feature];")
    number = real_literal(schema.missing, single=schema.dtype == "float32")
    return _VALUE.format(
        body=f"const real x = row[feature];\n    return x == {number} ? NAN : x; /* missing */"
    )


def _refused(schema: Schema, real: str) -> str:
    """The function that finds values that are refused; "" where none is."""
    infinite = "FLT_MAX" if real == "float" else "DBL_MAX"
    tests = [] if schema.accepts_missing else ["x != x"]
    if not schema.accepts_infinity:
        tests += [f"x > {infinite}", f"x < -{infinite}"]
    table, count, column = "", str(schema.n_features), "j"
    if schema.must_have and schema.accepts_missing:
        if tests:  # infinities are refused everywhere, NaN in some columns
            flags = ", ".join(str(int(j in schema.must_have)) for j in range(schema.n_features))
            table = f"    static const uint8_t must_have[{count}] = {{{flags}}};\n"
            tests.append("(must_have[j] && x != x)")
        else:
            columns = ", ".join(map(str, schema.must_have))
            count, column, tests = str(len(schema.must_have)), "must_have[j]", ["x != x"]
            table = f"    static const uint32_t must_have[{count}] = {{{columns}}};\n"
    if not tests or not schema.n_features:
        return ""
    return _REFUSED.format(table=table, count=count, column=column, tests=" || ".join(tests))
