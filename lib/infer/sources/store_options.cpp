#include "infer/sources/store_options.h"

namespace infer {

void StoreOptions::fields(core::FieldList& f) {
  const auto in_datastores = f.group("Datastores");
  f("datastore", folders, "folder of a datastore of this model; may be repeated");
  f("datastore-combine", combine,
    "joint: datastores join the model's softmax; interpolate: form a separate distribution; "
    "both; auto: as --combine",
    {"auto", "joint", "interpolate", "both", "released"});
  f("k", k, "nearest neighbours per query, over all datastores").between(1, 65536);
  f("nprobe", nprobe, "inverted lists probed per query (nprobe)").between(1, 1e6);
  f("rescore", rescore, "recompute the scores of the neighbours from the stored keys");
  f("min-pointers", follow,
    "RetoMaton: follow the pointers of the last neighbours instead of searching while at "
    "least N of them predicted the token; 0: always search")
      .between(0, 65536);
  f("datastore-lambda", *lambda.target(),
    "interpolation weight of the datastores (0 to below 1), or gate");
  f("datastore-threshold", threshold,
    "search only where the gate, from the model's confidence alone, gives the datastores at "
    "least this weight")
      .at_least(0)
      .below(1);
  f("datastore-temperature", temperature,
    "temperature of the interpolated distribution; 0: sqrt(width of a key)")
      .between(0, 1e6);
  joint.fields(f, "datastore", "entries of datastores");
}

}  // namespace infer
