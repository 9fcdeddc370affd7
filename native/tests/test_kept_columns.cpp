// Values of rows that go on, against plain loops. Arrays end where the last value does, so that a
// sanitizer finds reads past it.
#include <cmath>
#include <string>

#include "core/kept_columns.hpp"
#include "tests/check.hpp"
#include "tests/engines.hpp"
#include "tests/masks.hpp"

namespace {

using namespace qwyc;
using namespace qwyc::tests;

template <class In>
std::vector<In> odd_values(Random& random, int64_t n) {
    using Limits = std::numeric_limits<In>;
    constexpr In kOdd[] = {
        Limits::quiet_NaN(),  Limits::infinity(), -Limits::infinity(), Limits::max(),
        Limits::denorm_min(), In(-0.0),           In(16777217.0),      In(0.1)};
    std::vector<In> values(n);
    for (In& x : values)
        x = random.below(3) ? static_cast<In>(random.normal()) : kOdd[random.below(8)];
    return values;
}

std::vector<uint64_t> some_bits(Random& random, int64_t n, double share) {
    std::vector<uint64_t> bits((n + 63) / 64);
    for (int64_t i = 0; i < n; ++i)
        if (random.uniform() < share) bits[i / 64] |= uint64_t{1} << i % 64;
    return bits;
}

// All instruction sets that keep values.
template <class Visit>
void each_isa(Visit visit) {
    for (std::string_view isa : available_isas())
        if (mask_kernels(isa).keep<float>()) visit(mask_kernels(isa), std::string(isa));
}

template <class In>
void check_kernel(const MaskKernels& kernels, int64_t n, double share, const std::string& context) {
    Random random(n);
    const std::vector<In> one = odd_values<In>(random, n), other = odd_values<In>(random, n);
    const std::vector<uint64_t> alive = some_bits(random, n, share);
    std::vector<float> of_one, of_other;
    for (int64_t i = 0; i < n; ++i)
        if (alive[i / 64] >> i % 64 & 1) {
            of_one.push_back(static_cast<float>(one[i]));
            of_other.push_back(static_cast<float>(other[i]));
        }
    const auto kept = static_cast<int64_t>(of_one.size());
    std::vector<float> to_one(kept + 16), to_other(kept + 16);
    const std::vector<KeptColumn<In>> columns = {{one.data(), to_one.data()},
                                                 {other.data(), to_other.data()}};
    kernels.keep<In>()(columns, alive.data(), n);
    to_one.resize(kept), to_other.resize(kept);
    CHECK_ALL_EQUAL(to_one, of_one, context + " first column");
    CHECK_ALL_EQUAL(to_other, of_other, context + " second column");
    if constexpr (std::is_same_v<In, float>) {
        std::vector<float> here = one;
        here.resize(n + 16);
        const std::vector<KeptColumn<float>> in_place = {{here.data(), here.data()}};
        kernels.keep<float>()(in_place, alive.data(), n);
        here.resize(kept);
        CHECK_ALL_EQUAL(here, of_one, context + " in place");
    }
}

TEST(kernels_keep_the_values_of_rows_that_are_alive) {
    each_isa([](const MaskKernels& kernels, const std::string& isa) {
        for (double share : {0.0, 0.03, 0.4, 0.9, 1.0})
            for (int64_t n = 0; n <= 200; ++n) {
                const std::string context =
                    isa + " " + std::to_string(n) + " rows, share " + std::to_string(share);
                check_kernel<float>(kernels, n, share, context + " floats");
                check_kernel<double>(kernels, n, share, context + " doubles");
            }
    });
}

// A block of rows from `first` on, and segments that look at some columns each and leave out rows.
template <class In>
void check_segments(const MaskKernels& kernels, uint64_t seed, int32_t n, double share, bool slabs,
                    const std::string& context) {
    constexpr int64_t kWidth = 5, kFirst = 7;
    Random random(seed);
    const int64_t rows_in_all = kFirst + n, gap = rows_in_all + 3;
    const std::vector<In> values = odd_values<In>(random, gap * (kWidth - 1) + rows_in_all);
    const RowsView<In> rows{values.data(), rows_in_all, kWidth, 1, gap};
    KeptColumns<In> columns(kernels, true);
    columns.begin_block(rows, n);
    std::vector<int32_t> row;
    for (int32_t i = 0; i < n; ++i) row.push_back(kFirst + i);
    const std::vector<std::vector<int32_t>> needed = {{0, 3}, {0, 1, 3}, {1, 2}, {0, 1, 2, 3, 4}};
    for (size_t segment = 0; columns.takes(static_cast<int32_t>(row.size())); ++segment) {
        const auto before = static_cast<int32_t>(row.size());
        const std::vector<int32_t>& features = needed[segment % needed.size()];
        const std::vector<int32_t>& next = needed[(segment + 1) % needed.size()];
        if (segment > 0) {
            const RowsView<float> kept = columns.keep(features, row.data(), before);
            for (int32_t feature : features) {
                std::vector<float> expected;
                for (int32_t i : row)
                    expected.push_back(static_cast<float>(values[feature * gap + i]));
                const float* const found = kept.column(feature);
                CHECK_ALL_EQUAL(std::vector<float>(found, found + before), expected,
                                context + " segment " + std::to_string(segment) + " feature " +
                                    std::to_string(feature));
            }
        }
        const std::vector<uint64_t> alive = some_bits(random, before, share);
        std::vector<int32_t> left;
        for (int32_t at = 0; at < before; at += kSlab) {
            const int32_t here = std::min(kSlab, before - at);
            const auto left_before = static_cast<int32_t>(left.size());
            for (int32_t i = at; i < at + here; ++i)
                if (alive[i / 64] >> i % 64 & 1) left.push_back(row[i]);
            std::copy_n(alive.data() + at / 64, (here + 63) / 64, columns.alive(at));
            if (segment == 0 && slabs)
                columns.keep_slab(next, kFirst + at, at, here, left.data(), left_before,
                                  static_cast<int32_t>(left.size()));
        }
        row = left;
        if (segment == 4) columns.forget();  // all are picked again
    }
}

TEST(values_of_rows_that_go_on_from_segment_to_segment) {
    each_isa([](const MaskKernels& kernels, const std::string& isa) {
        uint64_t seed = 0;
        for (int32_t n : {65, 100, 512, 513, 1500, 5000})
            for (double share : {0.1, 0.5, 0.8, 0.97})
                for (bool slabs : {false, true}) {
                    const std::string context = isa + " " + std::to_string(n) + " rows, share " +
                                                std::to_string(share) + (slabs ? " by slabs" : "");
                    check_segments<float>(kernels, ++seed, n, share, slabs, context + " floats");
                    check_segments<double>(kernels, ++seed, n, share, slabs, context + " doubles");
                }
    });
}

TEST(values_are_kept_only_where_columns_lie_apart_and_are_compared_as_floats) {
    each_isa([](const MaskKernels& kernels, const std::string&) {
        const std::vector<double> values(400);
        const auto takes = [&](const RowsView<double>& rows, int32_t n, bool as_floats) {
            KeptColumns<double> columns(kernels, as_floats);
            columns.begin_block(rows, n);
            CHECK_EQUAL(columns.alive(0) != nullptr, columns.takes(n));
            return columns.takes(n);
        };
        const RowsView<double> apart{values.data(), 100, 4, 1, 100},
            rows{values.data(), 100, 4, 4, 1};
        CHECK(takes(apart, 100, true));
        CHECK(!takes(apart, 100, false));
        CHECK(!takes(apart, 64, true));
        CHECK(!takes(rows, 100, true));
    });
}

// Columns of which every second is written for the rows of the first segment that looks at it.
template <class In>
class LateColumns : public Columns<In> {
  public:
    LateColumns(const std::vector<In>& rows, int64_t n, int64_t width)
        : values_(width), written_(width) {
        for (int64_t j = 0; j < width; ++j) {
            for (int64_t i = 0; i < n; ++i) values_[j].push_back(rows[i * width + j]);
            written_[j] = values_[j];
            if (j % 2) written_[j].assign(n, In(777)), this->late_.push_back(static_cast<int>(j));
            this->at_.push_back(written_[j].data());
        }
    }
    void write(std::span<const int32_t> features, int64_t first, const int32_t* row,
               int64_t n) override {
        for (int32_t j : features)
            for (int64_t i = 0; i < n && j % 2; ++i) {
                const int64_t at = first + (row ? row[i] : i);
                written_[j][at] = values_[j][at];
            }
    }

  private:
    std::vector<std::vector<In>> values_, written_;
};

// There are so many columns that every segment looks at some for the first time.
template <class Real, class In>
void check_late_columns(uint64_t seed) {
    constexpr int64_t kRows = 3000, kWidth = 40, kTrees = 60;
    Trees<Real> trees;
    trees.n_features = kWidth;
    Random random(seed);
    trees.rules = random_rules(random, kTrees);
    for (int32_t t = 0; t < kTrees; ++t) grow(trees, random, {.depth = 3}, 3), trees.end_tree();
    const EngineProblem<Real, In> problem(trees, random_rows<In>(seed, kRows, kWidth), seed);
    const FullEngine<Real> engine(problem.forest);
    const QuitEngine<Real> quitter(engine, problem.policy.view());
    for (std::string_view isa : available_isas()) {
        LateColumns<In> columns(problem.rows, kRows, kWidth);
        Decided found(kRows);
        quitter.decide(RowsView<In>::apart(columns, kRows, kWidth), found.out(), 1, isa);
        check_decided(found, problem.expected, std::string(isa));
    }
}

TEST(columns_that_are_written_when_they_are_needed) {
    for (uint64_t seed = 0; seed < 4; ++seed) {
        check_late_columns<float, float>(seed);
        check_late_columns<float, double>(seed);
        check_late_columns<double, double>(seed);
    }
}

}  // namespace
