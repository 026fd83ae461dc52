#include "infer/score/score_together.h"

#include <algorithm>

#include "core/error.h"

namespace infer {

std::optional<PartsSum> score_together(
    const EvaluationOptions& options, const std::set<std::string>& given,
    const std::vector<std::string>& files, ranks::Group& group,
    const std::function<void(std::uint64_t done, std::uint64_t of)>& progress) {
  if (files.empty() || std::find(files.begin(), files.end(), "-") != files.end())
    core::fail(core::Code::usage, "FILE: several ranks cannot read one stdin; give files");
  std::string own;
  group.together([&] {
    const Evaluation evaluation(options, given);
    const auto data = evaluation.open(files);
    const std::uint64_t of = data.size() / static_cast<std::uint64_t>(group.size());
    own = to_text(evaluation.score_part(data, {group.rank(), group.size()},
                                        [&](std::uint64_t done) { progress(done, of); }));
  });
  std::vector<NamedLine> lines;
  for (auto& line : group.gather(own))
    lines.push_back({fmt::format("rank {}", lines.size()), std::move(line)});
  std::optional<PartsSum> sum;
  group.together([&] {
    if (group.first()) sum = sum_parts(lines);
  });
  return sum;
}

}  // namespace infer
