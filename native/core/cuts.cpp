#include "core/cuts.hpp"

#include <algorithm>

namespace qwyc {

namespace {

constexpr int32_t kMaxGridCells = 2048;

template <class Real>
int32_t cell_of(Real x, Real low, Real scale, int32_t cells) {
    const Real at = (x - low) * scale, last = Real(cells - 1);  // NaN is cell 0
    return static_cast<int32_t>(at > 0 ? (at < last ? at : last) : 0);
}

// The grid that needs the fewest probes, where that is cheaper than halving.
template <class Real>
void make_grid(Cuts<Real>& cuts) {
    const int32_t n = cuts.count;
    for (cuts.halvings = 0; (1 << cuts.halvings) < n + 1;) ++cuts.halvings;
    // Infinite cuts are left to the probes: every cell's cuts are compared in the end.
    const auto finite = [](Real x) { return std::isfinite(x); };
    const auto first = std::find_if(cuts.cut.begin(), cuts.cut.end(), finite);
    if (first == cuts.cut.end()) return;
    const Real low = *first;
    const Real high = *std::find_if(cuts.cut.rbegin(), cuts.cut.rend(), finite);
    int32_t best = cuts.halvings;  // a probe costs about what a halving does
    for (int32_t cells = 8; cells <= kMaxGridCells; cells *= 2) {
        Real scale = Real(cells - 1) / (high - low);
        if (!std::isfinite(scale)) scale = 0;
        std::vector<int32_t> in_cell(cells, 0);
        int32_t probes = 0;
        for (Real cut : cuts.cut) {
            const int32_t cell = cell_of(cut, low, scale, cells);
            probes = std::max(probes, ++in_cell[cell]);
        }
        if (probes >= best || (probes == best - 1 && probes > 2)) continue;
        best = probes;
        cuts.low = low, cuts.scale = scale, cuts.cells = cells, cuts.probes = probes;
        cuts.start.assign(cells, 0);
        for (int32_t cell = 0, before = 0; cell < cells; ++cell) {
            cuts.start[cell] = before;
            before += in_cell[cell];
        }
        if (probes <= 1) break;
    }
}

}  // namespace

template <class Real>
void Cuts<Real>::finish() {
    std::sort(cut.begin(), cut.end());
    cut.erase(std::unique(cut.begin(), cut.end()), cut.end());
    cut.shrink_to_fit();
    count = static_cast<int32_t>(cut.size());
    make_grid(*this);
    const int32_t padding = std::max(probes, 1 << halvings);
    cut.resize(count + padding, std::numeric_limits<Real>::quiet_NaN());
}

template struct Cuts<float>;
template struct Cuts<double>;

}  // namespace qwyc
