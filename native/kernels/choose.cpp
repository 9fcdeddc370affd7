#include <stdexcept>
#include <string>

#include "core/coded_trees.hpp"
#include "core/kernels.hpp"
#include "core/lattice_kernels.hpp"
#include "core/mask_kernels.hpp"
#include "core/path_kernels.hpp"
#include "core/row_trees.hpp"
#include "core/short_texts.hpp"
#include "kernels/targets.hpp"

namespace qwyc {

// Declared on all machines, used only where they are compiled.
namespace portable {
extern const RowKernels row_table;
extern const Kernels table;
extern const MaskKernels masks_table;
extern const PathKernels path_table;
extern const LatticeKernels<float> lattices_of_float;
extern const LatticeKernels<double> lattices_of_double;
}  // namespace portable
namespace avx2 {
extern const Kernels table;
extern const MaskKernels masks_table;
extern const PathKernels path_table;
extern const LatticeKernels<float> lattices_of_float;
extern const LatticeKernels<double> lattices_of_double;
extern const TextKernels texts_table;
extern const CodedKernels coded_table;
}  // namespace avx2
namespace avx512 {
extern const RowKernels row_table;
extern const Kernels table;
extern const MaskKernels masks_table;
extern const LatticeKernels<float> lattices_of_float;
extern const LatticeKernels<double> lattices_of_double;
extern const PathKernels path_table;
extern const TextKernels texts_table;
extern const CodedKernels coded_table;
}  // namespace avx512
namespace neon {
extern const Kernels table;
extern const MaskKernels masks_table;
extern const LatticeKernels<float> lattices_of_float;
extern const LatticeKernels<double> lattices_of_double;
}  // namespace neon

namespace {

struct Choice {
    const Kernels* table;
    const MaskKernels* masks;
    const RowKernels* one_row;
    const PathKernels* path;
    const LatticeKernels<float>* lattices_of_float;
    const LatticeKernels<double>* lattices_of_double;
    bool runs;
};

// Best first.
template <class Visit>
void each_choice(Visit visit) {
// `rows` and `paths`: where an instruction set has no tables of its own for these.
#define QWYC_TABLES(isa, rows, paths)                                                              \
    &isa::table, &isa::masks_table, &rows::row_table, &paths::path_table, &isa::lattices_of_float, \
        &isa::lattices_of_double
#if QWYC_X86
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                      __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                      __builtin_cpu_supports("popcnt");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512vl") &&
                        __builtin_cpu_supports("avx512vbmi") &&
                        __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("gfni");
    visit(Choice{QWYC_TABLES(avx512, avx512, avx512), avx512});
    visit(Choice{QWYC_TABLES(avx2, portable, avx2), avx2});
#elif QWYC_NEON
    visit(Choice{QWYC_TABLES(neon, portable, portable), true});
#endif
    visit(Choice{QWYC_TABLES(portable, portable, portable), true});
#undef QWYC_TABLES
}

Choice find(std::string_view isa) {
    Choice found{};
    each_choice([&](const Choice& choice) {
        if (!found.table && choice.runs && (isa.empty() || choice.table->isa == isa))
            found = choice;
    });
    if (!found.table) throw std::invalid_argument("this machine does not run " + std::string(isa));
    return found;
}

// One row takes less time than looking for its kernels would.
Choice choose(std::string_view isa) {
    static const Choice best = find("");
    return isa.empty() ? best : find(isa);
}

}  // namespace

const Kernels& kernels(std::string_view isa) {
    return *choose(isa).table;
}

const MaskKernels& mask_kernels(std::string_view isa) {
    return *choose(isa).masks;
}

const RowKernels& row_kernels(std::string_view isa) {
    return *choose(isa).one_row;
}

const PathKernels& path_kernels(std::string_view isa) {
    return *choose(isa).path;
}

template <>
const LatticeKernels<float>& lattice_kernels<float>(std::string_view isa) {
    return *choose(isa).lattices_of_float;
}

template <>
const LatticeKernels<double>& lattice_kernels<double>(std::string_view isa) {
    return *choose(isa).lattices_of_double;
}

const TextKernels* text_kernels(std::string_view isa) {
    const Choice found = choose(isa);
#if QWYC_X86
    if (found.table == &avx512::table) return &avx512::texts_table;
    if (found.table == &avx2::table) return &avx2::texts_table;
#endif
    static_cast<void>(found);
    return nullptr;
}

const CodedKernels* coded_kernels(std::string_view isa) {
    const Choice found = choose(isa);
#if QWYC_X86
    if (found.table == &avx512::table) return &avx512::coded_table;
    if (found.table == &avx2::table) return &avx2::coded_table;
#endif
    static_cast<void>(found);
    return nullptr;
}

std::vector<std::string_view> available_isas() {
    std::vector<std::string_view> names;
    each_choice([&](const Choice& choice) {
        if (choice.runs) names.push_back(choice.table->isa);
    });
    return names;
}

}  // namespace qwyc
