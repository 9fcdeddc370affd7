#include <stdexcept>
#include <string>

#include "core/kernels.hpp"
#include "kernels/targets.hpp"

namespace qwyc {

// Declared on all machines, used only where they are compiled.
namespace portable {
extern const Kernels table;
}
namespace avx2 {
extern const Kernels table;
}
namespace avx512 {
extern const Kernels table;
}

namespace {

struct Choice {
    const Kernels* table;
    bool runs;
};

// Best first. Tested at each call, which takes a few loads and needs no shared state.
template <class Visit>
void each_choice(Visit visit) {
#if QWYC_X86
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
                      __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
    const bool avx512 =
        avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2");
    visit(Choice{&avx512::table, avx512});
    visit(Choice{&avx2::table, avx2});
#endif
    visit(Choice{&portable::table, true});
}

}  // namespace

const Kernels& kernels(std::string_view isa) {
    const Kernels* found = nullptr;
    each_choice([&](Choice choice) {
        if (!found && choice.runs && (isa.empty() || choice.table->isa == isa))
            found = choice.table;
    });
    if (!found) throw std::invalid_argument("this machine does not run " + std::string(isa));
    return *found;
}

std::vector<std::string_view> available_isas() {
    std::vector<std::string_view> names;
    each_choice([&](Choice choice) {
        if (choice.runs) names.push_back(choice.table->isa);
    });
    return names;
}

}  // namespace qwyc
