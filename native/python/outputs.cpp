// Values and probabilities of full scores, for Python.
#include "core/outputs.hpp"

#include "core/parallel.hpp"
#include "python/arrays.hpp"

using namespace nanobind::literals;

namespace qwyc {

namespace {

constexpr int64_t kChunk = 4096;  // scores that a thread takes at once

}  // namespace

void bind_outputs(nb::module_& m) {
    m.def(
        "apply_output",
        [](Vector<double> scores, int kind, double scale, int threads) {
            require(kind >= 0 && kind < kOutputKinds, "there is no such kind of output");
            const auto n = static_cast<int64_t>(scores.shape(0));
            const double* const score = scores.data();
            double* data;
            auto out = new_vector<double>(n, data);
            {
                nb::gil_scoped_release release;
                parallel_for(n, kChunk, threads, [=](int64_t begin, int64_t end) {
                    apply_output(static_cast<OutputKind>(kind), scale, score + begin, end - begin,
                                 data + begin);
                });
            }
            return out;
        },
        "scores"_a, "kind"_a, "scale"_a, "threads"_a,
        "(N,) what the source gives for full scores (N,).");
}

}  // namespace qwyc
