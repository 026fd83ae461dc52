#include "text/formats/export.h"

#include "core/error.h"
#include "core/io.h"
#include "text/tokenizer/byte_level.h"
#include "text/tokenizer/json_text.h"

namespace text {

void export_gpt2(const Tokenizer& tokenizer, const std::string& folder) {
  const auto* bpe = dynamic_cast<const ByteLevel*>(&tokenizer);
  if (bpe == nullptr || bpe->kind() != TokenizerKind::bpe || bpe->whole_words() ||
      bpe->split().kind() != Split::Kind::gpt2 || !bpe->steps().empty())
    core::fail(core::Code::usage,
               "--export gpt2 takes a byte-level BPE tokenizer with GPT-2's splitting, not {}{}",
               bpe == nullptr || bpe->kind() != TokenizerKind::bpe ? "" : "another ",
               name_of(tokenizer.kind()));
  const std::vector<std::string> names = bpe->file_names();
  JsonText vocabulary;
  vocabulary.open('{');
  for (std::uint32_t id = 0; id < tokenizer.size(); ++id)
    if (!names[id].empty()) vocabulary.key(names[id]).number(id);
  vocabulary.close('}');
  std::string merges = "#version: 0.2\n";
  for (const Merge& merge : bpe->merges().list())
    merges.append(names[merge.left]).append(" ").append(names[merge.right]).append("\n");
  core::make_folder(folder);
  core::write_file(folder + "/merges.txt", merges);
  core::write_file(folder + "/vocab.json", std::move(vocabulary).text() + "\n");
}

}  // namespace text
