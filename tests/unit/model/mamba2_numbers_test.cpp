// A mamba2 compared with transformers' numbers: tests/golden/mamba2_numbers.py wrote the folder.

#include "model/folder.h"
#include "nll_of.h"

DOCTEST_TEST_CASE("a mamba2 gives transformers' log-probabilities of each token") {
  const std::string golden = "tests/golden/mamba2";
  const auto loaded = model::load(golden, torch::kCPU, torch::kFloat64);
  const auto single = model::load(golden, torch::kCPU, torch::kFloat32);
  const auto expected = golden_nll(golden + "/nll.json");
  DOCTEST_CHECK(nll_gap(*loaded.model, expected) < 1e-6);  // transformers scans in float32
  DOCTEST_CHECK(nll_gap(*single.model, expected) < 1e-4);
}
