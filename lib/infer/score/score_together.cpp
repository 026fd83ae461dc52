#include "infer/score/score_together.h"

#include "core/error.h"
#include "infer/stores/shared_stores.h"
#include "ranks/agreement.h"
#include "ranks/rank_options.h"

namespace infer {

std::optional<PartsSum> score_together(
    const SharedEvaluation& what, std::shared_ptr<ranks::Group> group,
    const std::function<void(std::uint64_t done, std::uint64_t of)>& progress) {
  const auto& files = what.files;
  ranks::expect_files(files);
  ranks::expect_agreement(*group, {{"datastore-ranks", what.own_stores},
                                   {"batch-tokens", what.options.windows.batch_tokens},
                                   {"jobs", at::get_num_threads()}});
  std::string own;
  const auto score = [&](const StoreOpener& open) {
    const Evaluation evaluation(what.options, what.given, open);
    const auto data = evaluation.open(files);
    const std::uint64_t of = data.size() / static_cast<std::uint64_t>(group->size());
    own = to_text(
        evaluation.score_part(data, {group->rank(), group->size()}, [&](std::uint64_t done) {
          if (group->interrupted()) core::fail(core::Code::rank_lost, "another rank was lost");
          progress(done, of);
        }));
  };
  if (what.own_stores) {
    score([&](const auto& folders, const auto& loaded) {
      return share_stores(folders, loaded, group);
    });
  } else {
    group->together([&] { score(nullptr); });
  }
  std::vector<NamedLine> lines;
  for (auto& line : group->gather(own))
    lines.push_back({fmt::format("rank {}", lines.size()), std::move(line)});
  std::optional<PartsSum> sum;
  group->together([&] {
    if (group->first()) sum = sum_parts(lines);
  });
  return sum;
}

}  // namespace infer
