// Copies of the rows that a sampler picks, with their decisions, for a check later.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <numeric>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/row_sampler.hpp"
#include "python/arrays.hpp"
#include "python/watcher.hpp"

namespace qwyc {

// A vector whose new entries are not set to anything.
template <class T>
class Entries {
  public:
    size_t size() const { return size_; }
    size_t capacity() const { return capacity_; }
    T* data() { return data_.get(); }
    const T* data() const { return data_.get(); }
    void clear() { size_ = 0; }

    // Adds n entries and returns the first of them.
    T* add(size_t n) {
        if (size_ + n > capacity_) {
            capacity_ = std::max(size_ + n, 2 * capacity_);
            auto larger = std::make_unique_for_overwrite<T[]>(capacity_);
            std::copy_n(data_.get(), size_, larger.get());
            data_ = std::move(larger);
        }
        size_ += n;
        return data_.get() + size_ - n;
    }

    // Moves the last n entries to the end of another.
    void move_last(size_t n, Entries& to) {
        size_ -= n;
        std::copy_n(data_.get() + size_, n, to.add(n));
    }

  private:
    std::unique_ptr<T[]> data_;
    size_t size_ = 0, capacity_ = 0;
};

// Rows that wait, and what was decided about each.
template <class Real>
struct WaitingRows {
    Entries<Real> rows;  // (n, n_features)
    Entries<uint8_t> decided;
    Entries<int32_t> steps;

    void clear() {
        rows.clear();
        decided.clear();
        steps.clear();
    }
    // Moves the last n rows of so many numbers to an empty one.
    void move_last(size_t n, size_t width, WaitingRows& to) {
        rows.move_last(n * width, to.rows);
        decided.move_last(n, to.decided);
        steps.move_last(n, to.steps);
    }
};

// One buffer that nobody uses. A new one would cost page faults each time.
template <class Real>
class SpareRows {
  public:
    WaitingRows<Real> take() {
        const std::lock_guard<std::mutex> guard(lock_);
        return std::exchange(spare_, {});
    }
    void give_back(WaitingRows<Real> rows) {
        rows.clear();
        const std::lock_guard<std::mutex> guard(lock_);
        if (rows.rows.capacity() > spare_.rows.capacity()) std::swap(spare_, rows);
    }

  private:
    std::mutex lock_;
    WaitingRows<Real> spare_;
};

// Picked rows of models that read numbers of this type.
template <class Real>
class PickedRowsOf {
  public:
    using Drained = std::tuple<OutMatrix<Real>, OutVector<uint8_t>, OutVector<int32_t>>;

    explicit PickedRowsOf(int64_t n_features) : n_features_(n_features) {}

    // Copies the rows at some positions. Returns how many wait.
    template <class In>
    int64_t keep(const RowsView<In>& rows, const uint8_t* decided, const int32_t* steps,
                 const std::vector<int64_t>& picked) {
        const size_t n = picked.size();
        Real* to = waiting_.rows.add(n * static_cast<size_t>(n_features_));
        uint8_t* decided_to = waiting_.decided.add(n);
        int32_t* steps_to = waiting_.steps.add(n);
        for (size_t k = 0; k < n; ++k, to += n_features_) {
            if (k + kAhead < n) {
                const int64_t later = picked[k + kAhead];
                prefetch(rows, later);
                __builtin_prefetch(decided + later);
                __builtin_prefetch(steps + later);
                __builtin_prefetch(to + kAhead * static_cast<size_t>(n_features_), 1);
            }
            const int64_t i = picked[k];
            copy(rows.data + i * rows.row_stride, rows.column_stride, to);
            decided_to[k] = decided[i];
            steps_to[k] = steps[i];
        }
        return static_cast<int64_t>(waiting_.steps.size());
    }

    // Takes waiting rows out: the first ones, whose number is a multiple of `together`, or all
    // where there are fewer. `give_back` lets their memory be used again.
    WaitingRows<Real> take_out(size_t together = 1) {
        WaitingRows<Real> taken = std::exchange(waiting_, spare_->take());
        const size_t n = taken.steps.size(), more = n < together ? 0 : n % together;
        taken.move_last(more, static_cast<size_t>(n_features_), waiting_);
        return taken;
    }
    void give_back(WaitingRows<Real> rows) { spare_->give_back(std::move(rows)); }

    // The waiting rows as arrays that own them. The memory is used again once the arrays are gone.
    Drained drain() {
        struct Lease {
            std::shared_ptr<SpareRows<Real>> spare;
            WaitingRows<Real> held;
        };
        auto* lease = new Lease{spare_, take_out()};
        const nb::capsule owner(lease, [](void* p) noexcept {
            const std::unique_ptr<Lease> done(static_cast<Lease*>(p));
            done->spare->give_back(std::move(done->held));
        });
        WaitingRows<Real>& held = lease->held;
        const size_t n = held.steps.size();
        return {OutMatrix<Real>(held.rows.data(), {n, static_cast<size_t>(n_features_)}, owner),
                OutVector<uint8_t>(held.decided.data(), {n}, owner),
                OutVector<int32_t>(held.steps.data(), {n}, owner)};
    }

  private:
    // Picked rows lie far apart, so processors do not fetch them in time. Where they are copied to
    // was last used a group ago, and is no longer in a near cache either.
    static constexpr size_t kAhead = 24;
    static constexpr int64_t kCacheLine = 64, kMostLines = 8;

    template <class In>
    void prefetch(const RowsView<In>& rows, int64_t i) const {
        const In* row = rows.data + i * rows.row_stride;
        if (rows.column_stride != 1) {
            const int64_t few = std::min<int64_t>(n_features_, kMostLines);
            for (int64_t j = 0; j < few; ++j) __builtin_prefetch(row + j * rows.column_stride);
            return;
        }
        const auto* begin = reinterpret_cast<const char*>(row);
        const int64_t bytes = n_features_ * static_cast<int64_t>(sizeof(In));
        for (int64_t at = 0; at < std::min(bytes, kMostLines * kCacheLine); at += kCacheLine)
            __builtin_prefetch(begin + at);
        if (bytes > 0) __builtin_prefetch(begin + bytes - 1);
    }

    template <class In>
    void copy(const In* row, int64_t stride, Real* to) const {
        if constexpr (std::is_same_v<In, Real>)
            if (stride == 1) return copy_bytes(row, to, n_features_ * sizeof(Real));
        if (stride == 1)
            std::transform(row, row + n_features_, to, [](In x) { return static_cast<Real>(x); });
        else
            for (int64_t j = 0; j < n_features_; ++j) to[j] = static_cast<Real>(row[j * stride]);
    }

    // Rows are short: a call of memcpy takes longer than this.
    static void copy_bytes(const void* from, void* to, size_t n) {
        constexpr size_t kWord = 16;
        if (n < kWord || n > kMostLines * kCacheLine) {
            std::memcpy(to, from, n);
            return;
        }
        const auto* in = static_cast<const char*>(from);
        auto* out = static_cast<char*>(to);
        for (size_t at = 0; at + kWord <= n; at += kWord) std::memcpy(out + at, in + at, kWord);
        std::memcpy(out + n - kWord, in + n - kWord, kWord);  // the rest, and some again
    }

    const int64_t n_features_;
    WaitingRows<Real> waiting_;
    const std::shared_ptr<SpareRows<Real>> spare_ = std::make_shared<SpareRows<Real>>();
};

// Threads may add rows at any time. Rows are kept as the model reads them: float or double.
class PickedRows {
  public:
    PickedRows(double rate, uint64_t seed, int64_t n_features, int64_t most, bool wide)
        : sampler_(rate, seed), n_features_(n_features), most_(most), kept_(of(n_features, wide)) {
        require(n_features >= 0 && most > 0, "there must be room for rows");
    }

    // Counts rows that were decided and copies those that are picked. True when enough of them
    // wait to be checked: `most`, or more of them in a call that takes long anyway.
    template <class In>
    bool add(const RowsView<In>& rows, const uint8_t* decided, const int32_t* steps) {
        const int64_t begin = sampler_.take(rows.n);
        if (begin < 0) return false;
        const std::lock_guard<std::mutex> guard(lock_);
        sampler_.claim(begin, rows.n, picked_);
        const int64_t enough = std::clamp(rows.n, most_, most_of_large_);
        return keep(rows, decided, steps) >= enough;
    }

    // Counts rows, and returns those that are picked.
    std::vector<int64_t> pick(int64_t n) {
        const int64_t begin = sampler_.take(n);
        if (begin < 0) return {};
        const std::lock_guard<std::mutex> guard(lock_);
        sampler_.claim(begin, n, picked_);
        return picked_;
    }
    bool pick_one() {
        const int64_t begin = sampler_.take(1);
        if (begin < 0) return false;
        const std::lock_guard<std::mutex> guard(lock_);
        sampler_.claim(begin, 1, picked_);
        return !picked_.empty();
    }

    int64_t taken() const { return sampler_.taken(); }

    // Copies rows that were picked already. True when `most` rows wait.
    template <class In>
    bool add_picked(const RowsView<In>& rows, const uint8_t* decided, const int32_t* steps) {
        const std::lock_guard<std::mutex> guard(lock_);
        picked_.resize(rows.n);
        std::iota(picked_.begin(), picked_.end(), 0);
        return keep(rows, decided, steps) >= most_;
    }

    // The waiting rows, (n, n_features), and their decisions, (n,) each. They wait no longer.
    std::variant<PickedRowsOf<float>::Drained, PickedRowsOf<double>::Drained> drain() {
        const std::lock_guard<std::mutex> guard(lock_);
        using Result = std::variant<PickedRowsOf<float>::Drained, PickedRowsOf<double>::Drained>;
        return std::visit([](auto& kept) -> Result { return kept.drain(); }, kept_);
    }

    // Calls use(rows) with waiting rows, which wait no longer, also where it throws: the first ones
    // whose number is a multiple of `together`, or all where there are fewer.
    template <class Use>
    void use_waiting(size_t together, const Use& use) {
        std::visit(
            [&](auto& kept) {
                auto waiting = [&] {
                    const std::lock_guard<std::mutex> guard(lock_);
                    return kept.take_out(together);
                }();
                use(waiting);
                kept.give_back(std::move(waiting));
            },
            kept_);
    }

    template <class Array>
    void check(const Array& rows, const Vector<uint8_t>& decided,
               const Vector<int32_t>& steps) const {
        require(static_cast<int64_t>(rows.shape(1)) == n_features_ &&
                    rows.shape(0) == decided.shape(0) && rows.shape(0) == steps.shape(0),
                "rows must have one column per feature, and one decision each");
    }

  private:
    using Kept = std::variant<PickedRowsOf<float>, PickedRowsOf<double>>;

    static Kept of(int64_t n_features, bool wide) {
        if (wide) return Kept(std::in_place_type<PickedRowsOf<double>>, n_features);
        return Kept(std::in_place_type<PickedRowsOf<float>>, n_features);
    }

    template <class In>
    int64_t keep(const RowsView<In>& rows, const uint8_t* decided, const int32_t* steps) {
        return std::visit([&](auto& kept) { return kept.keep(rows, decided, steps, picked_); },
                          kept_);
    }

    // A full evaluation begins with cold caches, which many rows share. One of no more rows than
    // the call itself has does not change the order of what the call takes.
    static constexpr int64_t kLarger = 4, kMostOfLarge = 8192;

    RowSampler sampler_;  // its claims need the lock
    const int64_t n_features_, most_;
    const int64_t most_of_large_ = std::max(most_, std::min(kLarger* most_, kMostOfLarge));
    std::mutex lock_;  // of what follows
    Kept kept_;
    std::vector<int64_t> picked_;  // in the call of now; kept for its memory
};

// Adds the rows that a quitter decides to picked rows, and calls a Python function with the number
// of threads when enough of them wait.
class PickingWatcher final : public Watcher {
  public:
    PickingWatcher(nb::object picked, nb::object on_full)
        : picked_(nb::cast<PickedRows*>(picked)),
          owner_(std::move(picked)),
          on_full_(std::move(on_full)) {}

    void see(const RowsView<float>& rows, const DecisionsOut& decided, int threads) override {
        add(rows, decided, threads);
    }
    void see(const RowsView<double>& rows, const DecisionsOut& decided, int threads) override {
        add(rows, decided, threads);
    }

  private:
    template <class In>
    void add(const RowsView<In>& rows, const DecisionsOut& decided, int threads) {
        if (!picked_->add(rows, decided.positive, decided.steps)) return;
        const nb::gil_scoped_acquire gil;
        on_full_(threads);
    }

    PickedRows* picked_;  // kept alive by owner_
    nb::object owner_, on_full_;
};

}  // namespace qwyc
