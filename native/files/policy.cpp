#include "files/policy.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace qwyc::files {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

void check_order(std::span<const int32_t> order, std::span<const double> costs, int64_t T) {
    require(static_cast<int64_t>(order.size()) == T,
            "the policy is for another number of base models");
    require(order.size() == costs.size(), "order and costs differ in length");
    std::vector<bool> seen(order.size(), false);
    for (const int32_t t : order) {
        require(t >= 0 && t < T && !seen[t], "order must name every base model exactly once");
        seen[t] = true;
    }
    for (const double cost : costs)
        require(std::isfinite(cost) && cost > 0, "costs must be positive numbers");
}

void read_thresholds(const Container& file, PolicyParts& policy) {
    policy.lower = file.values<double>("policy.lower");
    policy.upper = file.values<double>("policy.upper");
    require(policy.lower.size() == policy.order.size() &&
                policy.upper.size() == policy.order.size(),
            "lower and upper must have one entry per base model");
    for (size_t r = 0; r < policy.lower.size(); ++r)
        require(policy.lower[r] <= policy.upper[r], "lower must not exceed upper at any step");
}

void read_estimates(const Container& file, PolicyParts& policy) {
    policy.slope = file.values<double>("estimates.slope");
    policy.begin = file.values<int64_t>("estimates.begin");
    policy.knots = file.values<double>("estimates.knots");
    policy.offsets = file.values<double>("estimates.offsets");
    const size_t T = policy.order.size(), n = policy.knots.size();
    require(policy.slope.size() == T && policy.begin.size() == T + 1 && policy.offsets.size() == n,
            "estimates need a slope per step, and an offset per knot");
    require(policy.begin[0] == 0 && policy.begin[T] == static_cast<int64_t>(n),
            "the knots of the steps do not follow each other");
    for (const auto values : {policy.slope, policy.knots, policy.offsets})
        for (const double value : values)
            require(std::isfinite(value), "estimates must be finite numbers");
    for (size_t r = 0; r < T; ++r) {
        require(policy.begin[r] <= policy.begin[r + 1] && policy.begin[r + 1] <= policy.begin[T],
                "the knots of the steps do not follow each other");
        for (int64_t i = policy.begin[r] + 1; i < policy.begin[r + 1]; ++i)
            require(policy.knots[i - 1] < policy.knots[i],
                    "the knots of a step must be in ascending order");
        const bool quits = policy.lower[r] > -kInf || policy.upper[r] < kInf;
        require(!quits || (r + 1 < T && policy.begin[r] < policy.begin[r + 1]),
                "rows quit at a step without an estimate of the full score");
    }
}

void read_leads(const Container& file, const char* name, int64_t K, bool from_zero,
                PolicyParts& policy) {
    const auto values = file.values<double>(name);
    const size_t T = policy.order.size();
    const auto& shape = file.tensor(name).shape;
    require(shape[0] == static_cast<int64_t>(T), "thresholds are for another number of steps");
    const int64_t columns = shape.size() == 1 ? 1 : shape[1];
    require(columns == 1 || columns == K, "thresholds are for another number of classes");
    for (size_t r = 0; r < T; ++r)
        for (int64_t k = 0; k < K; ++k) {
            const double lead = values[r * columns + (columns == 1 ? 0 : k)];
            require(from_zero ? lead >= 0 : lead > -kInf,
                    "thresholds must be numbers, and inf where no row quits");
            policy.lead.push_back(lead);
        }
    if (file.has("policy.drop")) {
        policy.drop = file.values<double>("policy.drop");
        require(policy.drop.size() == T, "drop must have one entry per base model");
        for (const double limit : policy.drop)
            require(limit >= 0, "drop must be numbers of at least 0");
    }
}

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
        const bool found = policy.target == Target::kManyClasses ? same("path.lead", "policy.lead", k)
                           : policy.target == Target::kOneClass ? same("path.gap", "policy.gap", k)
                                                                : same("path.lower", "policy.lower", k) &&
                                                                      same("path.upper", "policy.upper", k);
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

}  // namespace

Target target_of(const Json& facts) {
    const std::string& kind =
        one_of(at(facts, "kind"), {"two-classes", "many-classes", "one-class", "within"});
    return kind == "two-classes"    ? Target::kTwoClasses
           : kind == "many-classes" ? Target::kManyClasses
           : kind == "one-class"    ? Target::kOneClass
                                    : Target::kWithin;
}

PolicyParts read_policy(const Container& file, Target target, const Json& facts, int64_t T,
                        int64_t K) {
    PolicyParts policy;
    policy.target = target;
    policy.order = file.values<int32_t>("policy.order");
    check_order(policy.order, file.values<double>("policy.costs"), T);
    const bool by_class =
        policy.target == Target::kManyClasses || policy.target == Target::kOneClass;
    require(by_class == (K > 1), "the model does not have the scores that its target compares");
    if (policy.target == Target::kOneClass) {
        const int64_t only = count(at(facts, "only"));
        require(only < K, "the class of the filter is not one of the model's");
        policy.only = static_cast<int32_t>(only);
        read_leads(file, "policy.gap", K, false, policy);
    } else if (policy.target == Target::kManyClasses) {
        read_leads(file, "policy.lead", K, true, policy);
    } else {
        policy.threshold = number(at(facts, "threshold"));
        read_thresholds(file, policy);
    }
    if (policy.target == Target::kWithin) {
        read_estimates(file, policy);
        policy.tolerance = number(at(facts, "tolerance"));
        require(policy.tolerance > 0, "the tolerance must be above 0");
    }
    return policy;
}

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
        require(by_class.size() == n, "rows are counted by another number of classes");
        require(differing.size() == n, "the certificate counts other kinds of difference");
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
            "the certificate counts other rows where they stopped");
    const auto stops = stops_of(file, policy);
    require(!file.has("certificate.stops") || counts_rows(stops, T, rows) || rows == 0,
            "the certificate counts other rows by step");
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
