// Store rows computed on a device that reports what the host waits for: they equal the CPU's, with
// one wait per block, also after stops.

#include <doctest/doctest.h>

#include <map>

#include "device/pretend_device.h"
#include "infer/keys/store_build.h"
#include "store/datastore.h"
#include "unit/infer/store_of_keys.h"
#include "unit/infer/tiny_pairs.h"

namespace {

namespace fs = std::filesystem;

struct EntriesCase {
  std::string arch;
  bool carried = false, pairs = false;
  double most_known = 1;
};

enum class Stops { never, after_blocks, killed };

struct Killed {};

class Making {
 public:
  explicit Making(const EntriesCase& c)
      : case_(c), data_(c.pairs ? *pairs_.data : text_.data()),
        windows_(tiny::windows_of(16, 8, c.carried)) {
    windows_.pairs = c.pairs;
    windows_.batch_tokens = c.pairs ? 16 : 32;
  }

  /// Returns what the host waited for. A killed run ends while the third block after a commit is
  /// stored; there is one commit per block.
  std::vector<std::string> run(
      const std::string& folder, torch::Device device, Stops stops = Stops::never) const {
    nn::Model model = tiny::model_of(case_.arch, "sinusoidal");
    model.to(device);
    store::Plan plan;
    plan.model = "m", plan.data = data_.fingerprint().hex(), plan.index = "exact";
    plan.width = static_cast<std::uint64_t>(model.architecture->d_key());
    plan.vocabulary = static_cast<std::uint64_t>(model.vocabulary);
    plan.leaves_out = case_.most_known < 1;
    infer::FillCallbacks watch;
    int blocks = 0;
    watch.commit_every_s = stops == Stops::killed ? -1 : 1e9;
    if (stops == Stops::after_blocks) watch.stop = [] { return true; };
    if (stops == Stops::killed)
      watch.progress = [&](std::uint64_t) {
        if (++blocks % 3 == 0) throw Killed();
      };
    for (;;) {
      store::Builder builder(folder, plan, false);
      const auto walk = infer::make_walk(model, data_, windows_, device);
      pretend::take_waits();
      try {
        const bool done = infer::fill_store(
            builder, *walk, walk->range_of({}), folder, device, watch, case_.most_known);
        if (!done && builder.place().get<std::uint64_t>() < walk->count()) continue;
      } catch (const Killed&) { continue; }
      builder.finish(walk->first_of_documents());
      infer::remove_states(folder);
      return pretend::take_waits();
    }
  }

  std::int64_t blocks() const {
    nn::Model model = tiny::model_of(case_.arch, "sinusoidal");
    const auto walk = infer::make_walk(model, data_, windows_, torch::kCPU);
    std::int64_t n = 0;
    while (walk->next()) ++n;
    return n;
  }

 private:
  EntriesCase case_;
  tiny::Pairs pairs_;
  tiny::Shard text_{tiny::text_of({150, 60})};
  const shard::Dataset& data_;
  infer::WindowPlan windows_;
};

std::map<std::string, std::string> contents(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder))
    files[entry.path().filename()] = core::read_text(entry.path());
  return files;
}

}  // namespace

DOCTEST_TEST_CASE(
    "a store made on a device has the CPU's rows, with a wait a block, stopped or not") {
  const auto device = pretend::device();
  for (const EntriesCase& c :
      {EntriesCase{"transformer"}, EntriesCase{"transformer", false, false, 0.05},
          EntriesCase{"lstm", true}, EntriesCase{"encoder-decoder", false, true},
          EntriesCase{"encoder-decoder", false, true, 0.05}}) {
    DOCTEST_CAPTURE(c.arch);
    DOCTEST_CAPTURE(c.most_known);
    const TemporaryFolder folder;
    const Making making(c);
    making.run(folder / "here", torch::kCPU);
    const auto waits = making.run(folder / "there", device);
    const auto events = std::count(waits.begin(), waits.end(), "an event");
    DOCTEST_CHECK(events == making.blocks());
    DOCTEST_CHECK(events > 2);
    if (!c.carried) DOCTEST_CHECK(std::ssize(waits) == events);  // otherwise the State is saved too
    for (const auto stops : {Stops::after_blocks, Stops::killed}) {
      const auto name = std::to_string(static_cast<int>(stops));
      making.run(folder / name, device, stops);
      DOCTEST_CHECK(contents(folder / "there") == contents(folder / name));
    }
    const store::Datastore here(folder / "here"), there(folder / "there");
    DOCTEST_REQUIRE(here.size() == there.size());
    DOCTEST_CHECK(std::equal(here.labels().begin(), here.labels().end(), there.labels().begin()));
    DOCTEST_CHECK(std::equal(here.places().begin(), here.places().end(), there.places().begin()));
    std::vector<float> ours(here.keys().size()), theirs(ours.size());
    store::to_float(here.keys().data(), ours);
    store::to_float(there.keys().data(), theirs);
    for (std::size_t i = 0; i < ours.size(); ++i)
      DOCTEST_REQUIRE(theirs[i] == doctest::Approx(static_cast<double>(ours[i])).epsilon(2e-3));
  }
}
