#include "infer/sources/store_options.h"

namespace infer {

void StoreOptions::fields(core::FieldList& f) {
  const auto in_datastores = f.group("Datastores");
  f("datastore", folders, "folder of a datastore of this model; again for more");
  f("datastore-combine", combine,
    "stores in the head's softmax, as a distribution of their own, or both; auto: as --combine",
    {"auto", "joint", "interpolate", "both", "released"});
  f("k", k, "nearest entries of all stores together").between(1, 65536);
  f("nprobe", nprobe, "inverted lists the index looks into").between(1, 1e6);
  f("rescore", rescore, "exact scores of the entries found, from the keys");
  f("follow", follow,
    "where so many of the last neighbours were right, "
    "go on with the rows after them instead of searching; 0: always search")
      .between(0, 65536);
  f("datastore-lambda", *lambda.target(),
    "share of the stores' own distribution (0 to below 1), or gate");
  f("datastore-threshold", threshold,
    "search where the gate gives the stores this share at least, by the model's confidence alone")
      .at_least(0)
      .below(1);
  f("datastore-temperature", temperature,
    "divides the scores in it; 0: the root of the keys' width")
      .between(0, 1e6);
  joint.fields(f, "datastore", "entries of datastores");
}

}  // namespace infer
