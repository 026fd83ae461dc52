#include "store/store.h"

#include "core/error.h"

namespace store {

void Store::expect_model(const std::string& model, const std::string& tokenizer,
                         const std::string& model_name) const {
  const Manifest& own = manifest();
  if (!model.empty() && model != own.model)
    core::fail(core::Code::bad_data,
               "{}: its keys are of the model {}, {} is {}; build a store with this model", name(),
               own.model, model_name, model);
  if (!tokenizer.empty() && !own.tokenizer.empty() && tokenizer != own.tokenizer)
    core::fail(core::Code::bad_data, "{}: its labels are of the tokenizer {}, that of {} is {}",
               name(), own.tokenizer, model_name, tokenizer);
}

}  // namespace store
