#include "store/store.h"

namespace store {

void Store::expect_keys(std::string_view what) const {
  if (manifest().keyed()) return;
  core::bad_usage(
      "{}: its keys were not kept (--keys none), and {} needs them; build the store again "
      "with --keys all",
      name(), what);
}

void Store::expect_rescorable() const {
  if (manifest().keyed()) return;
  core::bad_usage(
      "{}: its keys were not kept (--keys none), and --rescore needs them; link {}/{} to "
      "the folder of a store with the same keys",
      name(), name(), kKeysLink);
}

void Store::expect_followable() const {
  core::bad_usage("{}: its rows are on another rank; pointers cannot be followed", name());
}

std::int64_t Store::after(std::int64_t /*row*/) const {
  expect_followable();
  return -1;
}

void Store::score(std::span<const float> /*query*/, std::span<const std::int64_t> /*rows*/,
    std::span<float> /*scores*/, std::span<std::int32_t> /*labels*/) const {
  expect_followable();
}

void Store::expect_model(
    const std::string& model, const std::string& tokenizer, const std::string& model_name) const {
  const Manifest& own = manifest();
  if (!model.empty() && model != own.model)
    core::bad_data("{}: was built with the model {}, but {} is {}; build a store with this model",
        name(), own.model, model_name, model);
  if (!tokenizer.empty() && !own.tokenizer.empty() && tokenizer != own.tokenizer)
    core::bad_data("{}: was built with the tokenizer {}, but {} has {}", name(), own.tokenizer,
        model_name, tokenizer);
}

}  // namespace store
