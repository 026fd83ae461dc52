#include "infer/store_options.h"

#include <cmath>

#include "core/error.h"

namespace infer {

void StoreOptions::fields(core::FieldList& f) {
  f.group("Datastores");
  f("datastore", folders, "folder of a datastore of this model; again for more");
  f("datastore-combine", combine,
    "stores in the head's softmax, as a distribution of their own, or both; auto: as --combine",
    {"auto", "joint", "interpolate", "both", "released"});
  f("k", k, "nearest entries of all stores together");
  f("nprobe", nprobe, "inverted lists the index looks into");
  f("rescore", rescore, "exact scores of the entries found, from the keys");
  f("datastore-lambda", lambda, "share of the stores' own distribution");
  f("datastore-temperature", temperature,
    "divides the scores in it; 0: the root of the keys' width");
}

void resolve(StoreOptions& stores, const std::string& combine, std::int64_t width) {
  using core::Code;
  using core::fail;
  if (stores.combine == "auto") stores.combine = combine;
  if (stores.combine != "joint" && stores.combine != "interpolate" && stores.combine != "both" &&
      stores.combine != "released")
    fail(Code::usage, "--datastore-combine: '{}' is not joint, interpolate, both or released",
         stores.combine);
  if (stores.k < 1 || stores.k > 65'536) fail(Code::usage, "--k: takes 1 to 65,536 entries");
  if (stores.nprobe < 1) fail(Code::usage, "--nprobe: takes a positive number of lists");
  if (!(stores.temperature >= 0) || !std::isfinite(stores.temperature))
    fail(Code::usage, "--datastore-temperature: takes a number from 0 on");
  if (stores.temperature == 0) stores.temperature = std::sqrt(static_cast<double>(width));
}

}  // namespace infer
