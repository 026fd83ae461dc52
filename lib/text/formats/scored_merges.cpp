#include "text/formats/scored_merges.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "core/error.h"

namespace text {

std::vector<std::pair<std::string_view, std::string_view>> scored_merges(
    const std::vector<std::string_view>& tokens, const std::vector<double>& scores,
    const std::vector<bool>& merges, const std::string& origin) {
  const std::unordered_set<std::string_view> known(tokens.begin(), tokens.end());
  std::vector<std::size_t> order;
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    if (std::isnan(scores[id]))
      core::fail(core::Code::bad_data, "{}: the score of token {} is not a number", origin, id);
    if (!merges[id]) continue;
    if (tokens[id].size() > kLongestScored)
      core::fail(core::Code::bad_data, "{}: token {} of {} bytes is not supported (of {} it is)",
                 origin, id, tokens[id].size(), kLongestScored);
    order.push_back(id);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  std::vector<std::pair<std::string_view, std::string_view>> all;
  const std::size_t most = kPairsOfToken * tokens.size() + kMorePairs;
  for (const auto id : order) {
    const auto whole = tokens[id];
    for (std::size_t cut = 1; cut < whole.size(); ++cut) {
      if ((static_cast<unsigned char>(whole[cut]) & 0xC0) == 0x80) continue;  // inside a character
      const auto left = whole.substr(0, cut), right = whole.substr(cut);
      if (known.count(left) > 0 && known.count(right) > 0) all.emplace_back(left, right);
    }
    if (all.size() > most)
      core::fail(core::Code::bad_data,
                 "{}: its {} tokens are made of two others in more than {} ways, which is not "
                 "supported (of {} a token and {} it is); use the model's tokenizer.json",
                 origin, tokens.size(), most, kPairsOfToken, kMorePairs);
  }
  return all;
}

}  // namespace text
