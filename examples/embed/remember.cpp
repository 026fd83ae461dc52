// remember TRAIN TEST PROMPT: trains a small model on a text, builds a datastore of the text, and
// prints the perplexity of another text without and with the datastore, the tokens that follow the
// prompt most often in the text, and a continuation. A program outside of Tessera that uses its
// library: CMakeLists.txt beside it finds it.

#include <algorithm>
#include <iostream>
#include <string>

#include "tessera/error.h"
#include "tessera/evaluate.h"
#include "tessera/generate.h"
#include "tessera/ngrams.h"
#include "tessera/store.h"
#include "tessera/train.h"

int main(int argc, char** argv) try {
  if (argc != 4) throw tessera::Error(64, "usage: remember TRAIN TEST PROMPT");
  const std::string text = argv[1], test = argv[2], prompt = argv[3];
  tessera::start(2, 1, [](const std::string& note) { std::cerr << note << '\n'; });

  tessera::train({text}, "model",
      {{"layers", "2"}, {"d-model", "64"}, {"heads", "2"}, {"segment", "64"}, {"batch", "4"},
          {"steps", "50"}});
  tessera::build_store("model", {text}, "store");
  tessera::build_ngrams({text}, "ngrams", "model");

  const tessera::Model model("model");
  const tessera::Memory none, store{.datastores = {"store"}};
  std::cout.precision(10);
  std::cout << "parameters\t" << model.parameters() << '\n'
            << "model\t" << tessera::evaluate(model, {test}).perplexity << '\n'
            << "store\t" << tessera::evaluate(model, {test}, store).perplexity << '\n';

  const auto tokenizer = model.tokenizer();
  auto next = tessera::Ngrams({"ngrams"}).next(tokenizer.encode(prompt));
  std::ranges::stable_sort(next, std::greater(), &tessera::Ngrams::Next::count);
  for (std::size_t i = 0; i < std::min<std::size_t>(3, next.size()); ++i)
    std::cout << "next\t" << next[i].count << '\t' << tokenizer.token(next[i].token) << '\n';

  tessera::Generator generator(model, store, {{"temperature", "0"}, {"max-tokens", "12"}});
  std::cout << "text\t" << generator.generate({prompt})[0].text << '\n';
} catch (const tessera::Error& error) {
  std::cerr << "remember: " << error.what() << '\n';
  return error.code();
}
