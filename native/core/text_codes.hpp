// The codes of categories that are text.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace qwyc {

// Stands for a value that is to be refused, in place of a code.
inline constexpr double kRefused = std::numeric_limits<double>::infinity();

class TextCodes {
  public:
    // unseen: the code of any other text, or kRefused. null: that of no text at all.
    TextCodes(const std::vector<std::string>& texts, const std::vector<double>& codes,
              double unseen, double null)
        : texts_(texts), unseen_(unseen), null_(null) {
        codes_.reserve(texts_.size());
        for (size_t i = 0; i < texts_.size(); ++i) codes_.insert_or_assign(texts_[i], codes[i]);
    }
    TextCodes(const TextCodes&) = delete;  // keys refer to the texts
    TextCodes& operator=(const TextCodes&) = delete;

    double of(std::string_view text) const {
        const auto found = codes_.find(text);
        return found == codes_.end() ? unseen_ : found->second;
    }
    double null() const { return null_; }

  private:
    const std::vector<std::string> texts_;
    std::unordered_map<std::string_view, double> codes_;
    double unseen_, null_;
};

}  // namespace qwyc
