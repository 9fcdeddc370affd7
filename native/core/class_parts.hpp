// Trees of K classes in the order in which they are added, laid out for evaluation.
#pragma once

#include <algorithm>
#include <bit>
#include <span>
#include <vector>

#include "core/class_forest.hpp"
#include "core/class_sets.hpp"
#include "core/large_trees.hpp"
#include "core/mask_kernels.hpp"
#include "core/masked_trees.hpp"
#include "core/questions.hpp"

namespace qwyc {

// Trees that are added one after the other, or a test of running sums.
struct ClassRun {
    enum class Kind : uint8_t { kMasked, kWalked, kTest };
    Kind kind;
    int32_t begin, end;  // in ClassPart::trees, or in `walked`
    int32_t index;       // the class that trees add to; kTest: the step that is complete
};

// Which tables of leaves are needed.
enum class ClassTables : uint8_t { kSteps, kStepsAndFull, kFullSingle, kFullDouble };

// Trees whose questions are answered together.
struct ClassPart {
    std::vector<ClassRun> runs;
    std::vector<int32_t> walked;        // trees
    std::vector<int32_t> masked_trees;  // the same, on masks
    MaskedTrees trees;                  // on masks; leaf_value has the numbers of leaves
    // By channel, by leaf number: what running sums add, and what the source's own sums do.
    std::vector<std::vector<float>> single;
    std::vector<DoubleTables> both;
    DoubleTables full;                // what the source's own sums do, beside `single`
    std::vector<LeafBytes> bytes;     // by tree: `single` once more, or empty
    std::vector<ClassBits> asked_by;  // by question: the classes whose trees ask it
    CodedQuestions coded;             // if rows have codes; otherwise empty
    int32_t number_begin = 0;         // bytes of leaf numbers of the segment's parts before it

    bool masked() const { return trees.n_trees() > 0; }
};

// Collects runs, and lays their trees out. A part ends where its trees would ask too many
// questions.
template <class Real>
class ClassPartMaker {
  public:
    ClassPartMaker(const ClassForest<Real>& forest, const Questions<Real>& questions,
                   ClassTables tables)
        : forest_(forest),
          questions_(questions),
          tables_(tables),
          asked_(questions.all.size(), -1),
          parts_(1) {}

    void add(int32_t tree) {
        const bool masked = questions_.masked[tree] != 0;
        if (masked) ask(tree);
        ClassPart& part = parts_.back();
        std::vector<int32_t>& to = masked ? part.masked_trees : part.walked;
        const auto kind = masked ? ClassRun::Kind::kMasked : ClassRun::Kind::kWalked;
        const int32_t index = forest_.class_of(tree);
        const auto at = static_cast<int32_t>(to.size());
        to.push_back(tree);
        if (!part.runs.empty()) {
            ClassRun& last = part.runs.back();
            if (last.kind == kind && last.index == index) return void(last.end = at + 1);
        }
        part.runs.push_back({kind, at, at + 1, index});
    }

    // Trees of some base models, class by class.
    void add_steps(std::span<const int32_t> steps) {
        std::vector<int32_t> trees;
        for (int32_t step : steps)
            for (int32_t t = forest_.step_begin(step); t < forest_.step_end(step); ++t)
                trees.push_back(t);
        std::stable_sort(trees.begin(), trees.end(), [&](int32_t a, int32_t b) {
            return forest_.class_of(a) < forest_.class_of(b);
        });
        for (int32_t tree : trees) add(tree);
    }

    void test(int32_t step) { parts_.back().runs.push_back({ClassRun::Kind::kTest, 0, 0, step}); }

    std::vector<ClassPart> make() {
        for (ClassPart& part : parts_)
            if (!part.masked_trees.empty()) lay_out_part(part);
        return std::move(parts_);
    }

  private:
    // Counts the questions of a tree, in a new part where there are too many.
    void ask(int32_t tree) {
        const auto number = static_cast<int32_t>(parts_.size());
        int32_t added = 0;
        for (int32_t q : questions_.of_tree(forest_.trees(), tree))
            if (asked_[q] != number) asked_[q] = number, ++added;
        here_ += added;
        if (here_ <= kMaxQuestions || parts_.back().masked_trees.empty()) return;
        parts_.emplace_back();
        here_ = 0;
        ask(tree);
    }

    void lay_out_part(ClassPart& part) const {
        MaskedTrees& trees = part.trees =
            lay_out(forest_.trees(), questions_, part.masked_trees, true, uses_bytes());
        if (of_steps()) trees.leaf_value.halves = {};
        const std::vector<double>& leaf = trees.leaf_value.whole;  // numbers of leaves
        const auto full_table = [&](int32_t c) {
            DoubleTables table{std::vector<double>(leaf.size()), {}};
            for (size_t i = 0; i < leaf.size(); ++i)
                table.whole[i] = forest_.full_of(static_cast<int32_t>(leaf[i]))[c];
            halve(trees, table);
            return table;
        };
        if (tables_ == ClassTables::kStepsAndFull) part.full = full_table(0);
        for (int32_t c = 0; c < forest_.channels(); ++c) {
            if (tables_ == ClassTables::kFullDouble) {
                part.both.push_back(full_table(c));
                continue;
            }
            std::vector<float> table(leaf.size() + 32);  // kernels may load 64 values
            for (size_t i = 0; i < leaf.size(); ++i) {
                const auto number = static_cast<int32_t>(leaf[i]);
                table[i] = of_steps() ? forest_.step_of(number)[c]
                                      : static_cast<float>(forest_.full_of(number)[c]);
            }
            part.single.push_back(std::move(table));
        }
        trees.step_value = {};
        if (uses_bytes()) add_bytes(part);
        part.asked_by.resize(trees.n_questions);
        for (int32_t t = 0; t < trees.n_trees(); ++t)
            each_question(trees, trees.trees[t], [&](int32_t q) {
                part.asked_by[q] |= bit_of_class(forest_.class_of(part.masked_trees[t]));
            });
    }

    // The same layout on all machines, because costs are expected from it.
    bool uses_bytes() const { return of_steps() && !forest_.has_vectors(); }
    bool of_steps() const { return tables_ <= ClassTables::kStepsAndFull; }
    // Unless all tables are short, which are looked up faster as floats, or one has no bytes.
    static void add_bytes(ClassPart& part) {
        const std::vector<MaskedTree>& trees = part.trees.trees;
        if (!mask_kernels().add_bytes) return;
        int most = 0;
        for (const MaskedTree& tree : trees) most = std::max<int>(most, tree.bits);
        if (most <= 5 || most > kMaxPlanes) return;
        for (const MaskedTree& tree : trees) {
            LeafBytes& to = part.bytes.emplace_back(LeafBytes{});
            for (int32_t i = 0; i < 1 << tree.bits; ++i) {
                const auto word = std::bit_cast<uint32_t>(part.single[0][tree.table_begin + i]);
                for (int b = 0; b < 4; ++b) to.byte[b][i] = static_cast<uint8_t>(word >> 8 * b);
            }
        }
    }

    template <class Use>
    static void each_question(const MaskedTrees& trees, const MaskedTree& tree, const Use& use) {
        for (int32_t i = tree.begin; i < tree.end; ++i)
            if (tree.form == Form::kComplete)
                use(trees.heap[i]);
            else if (tree.form == Form::kReach)
                use(trees.splits[i].question);
            else if (tree.form == Form::kLarge)
                use(trees.divided[i].question);
        for (int32_t b = 0; b < tree.bits && tree.form == Form::kOblivious; ++b)
            use(trees.planes[tree.planes_begin + b]);
        if (tree.form != Form::kLarge) return;
        // Splits between leaves divide no mask.
        const int32_t* const flips = &trees.flip_begin[tree.flips_begin];
        for (int32_t i = flips[0]; i < flips[tree.bits]; ++i)
            if (trees.flips[i].second < trees.n_questions) use(trees.flips[i].second);
    }

    const ClassForest<Real>& forest_;
    const Questions<Real>& questions_;
    ClassTables tables_;
    std::vector<int32_t> asked_;  // by question: the part that asked last
    int32_t here_ = 0;            // questions of the last part
    std::vector<ClassPart> parts_;
};

// Adds the masked runs of a part to sums, for a slab whose questions are answered. sums: (K,
// stride), whole words of rows, float or double.
class ClassAdder {
  public:
    // kept: leaf numbers, where sums are doubles that steps add to.
    ClassAdder(const MaskKernels& kernels, const ClassPart& part, int32_t n_classes, bool vectors,
               uint64_t* masks, int32_t words, const LeafNumbers& kept = {})
        : kernels_(kernels),
          part_(part),
          n_classes_(n_classes),
          vectors_(vectors),
          masks_(masks),
          words_(words),
          kept_(kept) {}

    template <class Sum>
    void add(const ClassRun& run, Sum* sums, int64_t stride) {
        each_group(run, [&](int32_t t, int32_t end) {
            if (!vectors_)
                add_channel(0, t, end, sums + run.index * stride);
            else
                for (int32_t k = 0; k < n_classes_; ++k) add_channel(k, t, end, sums + k * stride);
        });
    }

    // Adds a run of one class from ClassPart::full.
    void add_full(const ClassRun& run, double* sums) {
        each_group(run, [&](int32_t t, int32_t end) {
            kernels_.add_double(part_.trees, part_.full, t, end, masks_, words_, sums);
        });
    }

    // Adds a run of one class, of whose part other runs may be left out.
    template <class Sum>
    void add_alone(const ClassRun& run, Sum* sums, int64_t stride) {
        for (int32_t t = run.begin, end; t < run.end; t = end) {
            end = std::min(run.end, (t / kTreesAtOnce + 1) * kTreesAtOnce);
            kernels_.slice(part_.trees, t, end, words_, masks_);
            add_channel(0, t, end, sums + run.index * stride);
        }
    }

  private:
    // Calls use(begin, end) for parts of a run whose planes are made.
    template <class Use>
    void each_group(const ClassRun& run, const Use& use) {
        for (int32_t t = run.begin, end; t < run.end; t = end) {
            const int32_t group = t / kTreesAtOnce;
            if (group != sliced_) {
                const int32_t first = group * kTreesAtOnce;
                kernels_.slice(part_.trees, first,
                               std::min(first + kTreesAtOnce, part_.trees.n_trees()), words_,
                               masks_);
                sliced_ = group;
            }
            end = std::min(run.end, (group + 1) * kTreesAtOnce);
            use(t, end);
        }
    }

    void add_channel(int32_t c, int32_t begin, int32_t end, float* sums) {
        kernels_.add_single(part_.trees, part_.single[c].data(), begin, end, masks_, words_, sums);
    }
    void add_channel(int32_t c, int32_t begin, int32_t end, double* sums) {
        const LeafNumbers kept = c == 0 ? kept_ : LeafNumbers{};
        if (!part_.bytes.empty() && kernels_.add_bytes)
            kernels_.add_bytes(part_.trees, part_.bytes.data(), begin, end, masks_, words_, sums,
                               kept);
        else if (part_.both.empty())
            kernels_.add_steps(part_.trees, part_.single[c].data(), begin, end, masks_, words_,
                               sums, kept);
        else
            kernels_.add_double(part_.trees, part_.both[c], begin, end, masks_, words_, sums);
    }

    const MaskKernels& kernels_;
    const ClassPart& part_;
    int32_t n_classes_;
    bool vectors_;
    uint64_t* masks_;
    int32_t words_;
    LeafNumbers kept_;
    int32_t sliced_ = -1;  // group of trees whose planes are made
};

}  // namespace qwyc
