#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "files/policy.hpp"

namespace qwyc::files {

namespace {

// First and last step of the bins in which rows are counted: 1, 2, 3-4, 5-8, ..., and T.
std::vector<int64_t> firsts_of_bins(int64_t T) {
    std::vector<int64_t> firsts;
    for (int64_t first = 1; first < T;) {
        firsts.push_back(first);
        first = std::min(std::max<int64_t>(2 * (first - 1), 1), T - 1) + 1;
    }
    firsts.push_back(T);
    return firsts;
}

// The share of rows that reaches each step, from rows by the step at which they stopped.
std::vector<double> reaching(std::span<const int64_t> stops) {
    std::vector<double> left(stops.size());
    double sum = 0;
    for (size_t r = stops.size(); r-- > 0;) left[r] = sum += static_cast<double>(stops[r]);
    for (double& share : left) share /= sum;
    return left;
}

// The rows by step that a path has for its policy; none where it does not have them.
std::span<const int64_t> stops_of(const Container& file, const PolicyParts& policy) {
    if (file.has("certificate.stops")) return file.values<int64_t>("certificate.stops");
    if (!file.has("path.stops")) return {};
    const auto same = [&](const char* of_path, const char* own, size_t k) {
        const auto all = file.tensor(of_path).bytes, one = file.tensor(own).bytes;
        return all.size() >= (k + 1) * one.size() &&
               std::memcmp(all.data() + k * one.size(), one.data(), one.size()) == 0;
    };
    const size_t T = policy.order.size();
    const auto stops = file.values<int64_t>("path.stops");
    for (size_t k = 0; (k + 1) * T <= stops.size(); ++k) {
        const bool found =
            policy.target == Target::kManyClasses ? same("path.lead", "policy.lead", k)
            : policy.target == Target::kOneClass
                ? same("path.gap", "policy.gap", k)
                : same("path.lower", "policy.lower", k) && same("path.upper", "policy.upper", k);
        if (found) return stops.subspan(k * T, T);
    }
    return {};
}

bool counts_rows(std::span<const int64_t> stops, size_t T, int64_t rows) {
    int64_t sum = 0;
    for (const int64_t n : stops) {
        if (n < 0 || n > rows) return false;
        sum += n;
        if (sum > rows) return false;
    }
    return stops.size() == T && sum == rows && rows > 0;
}

std::vector<double> survival_by_bins(std::span<const int64_t> exits, int64_t T) {
    const std::vector<int64_t> firsts = firsts_of_bins(T);
    const std::vector<double> left = reaching(exits);
    std::vector<double> survival(T);
    size_t bin = 0;
    for (int64_t r = 0; r < T; ++r) {
        while (bin + 1 < firsts.size() && firsts[bin + 1] - 1 <= r) ++bin;
        const double from = static_cast<double>(firsts[bin] - 1);
        if (bin + 1 == firsts.size()) {
            survival[r] = left[bin];
            continue;
        }
        const double width = static_cast<double>(firsts[bin + 1] - 1) - from;
        survival[r] =
            left[bin] + (left[bin + 1] - left[bin]) * (static_cast<double>(r) - from) / width;
    }
    return survival;
}

constexpr double kLeastShare = 1e-9;  // billions of rows would be needed to show less

double share_of(const Json& value, bool may_be_zero) {
    const double share = number(value, false);
    require(share < 1 && (share >= kLeastShare || (may_be_zero && share == 0)),
            "a share in the certificate is not at least 1e-9 and below 1");
    return share;
}

// What may differ: a share of all rows, shares by kind of difference, or shares of classes by
// index.
void check_budget(const Json& facts, int64_t n_classes, const PolicyParts& policy) {
    const Json& alpha = at(facts, "alpha");
    const Json* const limits = facts.find("by_class");
    require(!limits || limits->kind == Json::Kind::kObject, "by_class must be an object");
    const bool has_limits = limits && !limits->keys.empty();
    const bool within = policy.target == Target::kWithin;
    double total = 1;
    if (alpha.kind == Json::Kind::kObject) {
        require(policy.target == Target::kTwoClasses && alpha.keys.size() == 2,
                "alpha by kind needs both negative and positive, and two classes");
        share_of(at(alpha, "negative"), false), share_of(at(alpha, "positive"), false);
    } else if (alpha.kind != Json::Kind::kNull) {
        total = share_of(alpha, !within);
    } else {
        require(has_limits && !within, "alpha or by_class is needed");
    }
    if (!has_limits) return;
    require(!within && total > 0, "there are limits by class where there cannot be any");
    for (size_t i = 0; i < limits->keys.size(); ++i) {
        int64_t index = -1;
        const std::string& key = limits->keys[i];
        const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), index);
        require(error == std::errc() && end == key.data() + key.size() && index >= 0 &&
                    index < n_classes && (policy.only < 0 || index == policy.only),
                "by_class names a class that there is not");
        share_of(limits->items[i], false);
    }
}

}  // namespace

void read_certificate(const Container& file, const Json& facts, int64_t n_classes,
                      PolicyParts& policy) {
    const auto T = static_cast<int64_t>(policy.order.size());
    const std::string& how = one_of(at(facts, "how"), {"held-out", "in-sample", "proven"});
    const Json& confidence = at(facts, "confidence");
    if (confidence.kind != Json::Kind::kNull || how == "held-out")
        require(number(confidence) > 0 && number(confidence) < 1,
                "confidence must be between 0 and 1");
    require(number(at(facts, "full_cost")) > 0, "costs must be positive");
    count(at(facts, "fit_rows")), whole(at(facts, "seed")), text(at(facts, "sample"));
    count(at(facts, "groups"));
    if (const Json* doubts = facts.find("doubts"))
        for (const Json& doubt : list(*doubts)) text(doubt);
    for (const char* name : {"headroom", "left_out"})
        if (const Json* value = facts.find(name)) count(*value);
    if (const Json* digest = facts.find("recertified")) text(*digest);

    check_budget(facts, n_classes, policy);

    int64_t rows = 0, differences = 0;
    double mean_models = 0;
    std::vector<int64_t> exits;
    if (file.format() == 1) {
        rows = count(at(facts, "rows"));
        require(count(at(facts, "full_positive")) <= rows, "there are more positives than rows");
        differences = count(at(facts, "negative")) + count(at(facts, "positive"));
        mean_models = number(at(facts, "mean_models"));
        number(at(facts, "mean_cost"));
    } else {
        const Json& counts = at(facts, "counts");
        const auto& by_class = list(at(counts, "by_class"));
        const auto& differing = list(at(counts, "differences"));
        const size_t n = policy.target == Target::kWithin ? 1 : static_cast<size_t>(n_classes);
        require(by_class.size() == n, "rows are counted for a different number of classes");
        require(differing.size() == n, "the certificate counts different kinds of disagreement");
        constexpr int64_t kMost = int64_t{1} << 40;  // sums of them cannot overflow
        for (const Json& value : by_class) rows += std::min(count(value), kMost);
        for (const Json& value : differing) differences += std::min(count(value), kMost);
        mean_models = number(at(counts, "mean_models"));
        number(at(counts, "mean_cost"));
        if (const Json* bins = counts.find("exits"))
            for (const Json& value : list(*bins)) exits.push_back(std::min(count(value), kMost));
    }
    require(differences <= rows, "the certificate has more disagreements than rows");
    require(mean_models >= 0, "base models per row must be positive");
    require(exits.empty() || counts_rows(exits, firsts_of_bins(T).size(), rows) ||
                (rows == 0 && exits.size() == firsts_of_bins(T).size()),
            "the certificate's counts of where rows stopped are of different rows");
    const auto stops = stops_of(file, policy);
    require(!file.has("certificate.stops") || counts_rows(stops, T, rows) || rows == 0,
            "the certificate's counts by step are of different rows");
    if (counts_rows(stops, T, rows)) {
        policy.survival = reaching(stops);
    } else if (!exits.empty() && rows > 0) {
        policy.survival = survival_by_bins(exits, T);
    } else {
        const double mean = std::clamp(mean_models, 1.0, static_cast<double>(T));
        for (int64_t r = 0; r < T; ++r)
            policy.survival.push_back(std::pow(1 - 1 / mean, static_cast<double>(r)));
    }
}

}  // namespace qwyc::files
