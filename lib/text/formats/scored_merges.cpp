#include "text/formats/scored_merges.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "core/error.h"

namespace text {

std::vector<std::pair<std::string_view, std::string_view>> scored_merges(
    const std::vector<std::string_view>& tokens, const std::vector<double>& scores,
    const std::vector<bool>& merges, const std::string& origin) {
  std::unordered_map<std::string_view, std::size_t> ids;
  for (std::size_t id = 0; id < tokens.size(); ++id) ids.emplace(tokens[id], id);
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
  struct Parts {
    std::size_t left, right, cut;
  };
  std::vector<std::pair<std::string_view, std::string_view>> all;
  std::vector<Parts> found;
  const std::size_t most = kPairsOfToken * tokens.size() + kMorePairs;
  for (const auto id : order) {
    const auto whole = tokens[id];
    found.clear();
    for (std::size_t cut = 1; cut < whole.size(); ++cut) {
      if ((static_cast<unsigned char>(whole[cut]) & 0xC0) == 0x80) continue;  // inside a character
      const auto left = ids.find(whole.substr(0, cut)), right = ids.find(whole.substr(cut));
      if (left != ids.end() && right != ids.end())
        found.push_back({left->second, right->second, cut});
    }
    std::sort(found.begin(), found.end(), [](const Parts& a, const Parts& b) {
      return std::pair(a.left, a.right) < std::pair(b.left, b.right);
    });
    if (found.size() > most - all.size())
      core::fail(core::Code::bad_data,
                 "{}: its {} tokens are made of two others in more than {} ways, which is not "
                 "supported (of {} a token and {} it is); use the model's tokenizer.json",
                 origin, tokens.size(), most, kPairsOfToken, kMorePairs);
    for (const auto& parts : found)
      all.emplace_back(whole.substr(0, parts.cut), whole.substr(parts.cut));
  }
  return all;
}

}  // namespace text
