// The default lists from which prompts for stories are drawn.

#include "task/story_prompts.h"

#include "core/file_text.h"
#include "core/json_line.h"
#include "core/plain_text.h"
#include "shard/unpacked_source.h"

namespace task {
namespace {

/// Returns the length of the words that both lines begin with.
std::size_t common_words(std::string_view a, std::string_view b) {
  const auto common = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
  return a.substr(0, static_cast<std::size_t>(common)).rfind(' ') + 1;  // npos + 1 is 0
}

template <class List> std::string_view drawn(const List& list, core::Rng& rng) {
  return list[rng.below(list.size())];
}

constexpr std::string_view kNouns =
    "apple apron baker ball balloon barn basket bear bed bee bell bench berry bike bird blanket "
    "boat book boot bottle bowl box branch bread bridge broom brother bucket bus butter button "
    "cake candle car carrot castle cat chair cheese chicken cloud coat cookie cow crayon crown cup "
    "doll door dog donkey dragon drawer dress drum duck ear egg elephant farmer feather fence "
    "field fire fish flag floor flower fog forest fox friend frog garden gate ghost gift giraffe "
    "glove goat grass hammer hat hedge hen hill honey horse house ice island jam jar kettle key "
    "king kite kitten ladder lake lamb lamp leaf lemon letter lion lizard map market milk mirror "
    "monkey moon mountain mouse mud mushroom nest net night nose nut oven owl page paint pan park "
    "path peach pear pebble pencil penguin picture pie pig pillow pirate plant plate pond pony "
    "postman pot potato puddle puppet puppy queen rabbit rain rainbow ribbon ring river road robot "
    "rock roof rope rose sailor sand scarf school sea seed sheep shell ship shoe shop sister sky "
    "sled snail snow soap sock song soup spider spoon squirrel stair star stick stone stool storm "
    "story string sun swan sweater table teacher tent tiger toad tooth towel tower town toy train "
    "tree truck tunnel turtle umbrella uncle vase village wagon wall water well whale wheel "
    "whistle wind window wing winter wolf wood wool worm yard zebra";

constexpr std::string_view kVerbs =
    "ask bake bark bathe borrow bounce break bring brush build bump bury buy call carry catch "
    "chase choose clap clean climb close collect comb cook cough count cover crawl cross cry cut "
    "dance dig draw dream dress drink drive drop dry eat explore fall feed feel fight fill find "
    "fix float fly fold follow forget give glow greet grow guard guess hang help hide hold hop hug "
    "hum hurry jump keep kick knit knock laugh lead learn leave lend lick lift listen look lose "
    "love make march meet melt mend miss mix move nap nod open paint pat peek pick plant play "
    "point pour practise press promise pull push put race reach read rest ride ring roar roll row "
    "run sail save search share shine shout show sing sip sit skip sleep slide smell smile sneeze "
    "sniff splash stack stand stir stop sweep swim swing tap taste tell thank throw tickle tie "
    "touch trade travel trip trust try turn twirl visit wade wait wake walk warm wash watch water "
    "wave weigh whisper whistle wink wish wonder work wrap yawn yell";

constexpr std::string_view kAdjectives =
    "afraid amusing angry bare bent big bitter blue bold bored bossy brave bright broken brown "
    "busy calm careful cheerful chilly clean clever cloudy clumsy cold cosy cruel curious curly "
    "damp dark dear deep dirty dizzy dull dusty eager early easy empty fair famous fancy fast fat "
    "fierce fine flat fluffy foggy foolish free fresh friendly frosty frozen full funny furry "
    "fuzzy gentle giant glad golden good grand grateful greedy green grey grumpy happy hard heavy "
    "helpful hidden high hollow honest hot huge hungry icy jealous jolly kind large late lazy "
    "light little lonely long lost loud lovely low lucky mad magic mean messy mild modest muddy "
    "mysterious narrow naughty neat nervous new nice noisy nosy odd old orange pale patient "
    "peaceful pink plain playful polite poor pretty proud purple quick quiet rainy rare red rich "
    "ripe rough round rude sad safe salty scared selfish shaky sharp shiny short shy silent silly "
    "silver sleepy slippery slow small smart smooth soft sore sour spicy spotted square stiff "
    "sticky strange striped strong stubborn sudden sunny sweet tall tame tender thick thin thirsty "
    "tidy tiny tired tough ugly useful warm weak weird wet white wide wild wise wonderful wooden "
    "worried yellow young";

constexpr std::string_view kNames =
    "Ada Adam Ali Alma Amir Amy Anna Anton Arlo Asa Ayo Bea Ben Bilal Bo Bruno Cara Carl Chen "
    "Clara Cora Dan Dara Dina Dora Eli Ella Emil Emma Eric Esme Eva Ezra Fay Felix Finn Flora Gita "
    "Greta Gus Hana Hank Hugo Ida Ines Iris Isa Ivan Jack Jai Jan Jin Joe June Kai Kara Karl Kim "
    "Kofi Lara Lars Lea Leo Lila Lina Liv Luca Lucy Luis Mai Mara Marco Mei Mia Mila Mina Moe "
    "Nadia Nell Nia Nico Nina Noah Nora Ola Olga Omar Otto Pablo Pam Paul Petra Pia Pip Rafi Raj "
    "Rita Rosa Ruby Ruth Sam Sami Sara Sven Tara Tess Theo Tim Tom Uma Una Vera Vito Wen Will "
    "Yara Yuki Zack Zara Zoe";

constexpr std::string_view kOpenings =
    R"(Once there was a child who could not sleep when the wind blew
On the edge of a small town there stood a house with a round door
One morning, before anybody was awake, a sound came from the garden and would not stop
It was the coldest day of the winter, and the pond had turned to glass
In the middle of the forest, where no path goes, lived somebody very small
Nobody knew where the old key came from or what it might open
The day began with a letter that had no name on it
Far away, behind seven hills, a baker had forgotten how to bake his bread
When the rain stopped at last, there was something new in the yard
Under the bed, between a sock and a dusty ball, something was moving
Every evening at six the same grey cat walked along the wall and looked in
There was a boat at the lake that nobody was allowed to touch
It was market day, and the street was full of people and apples
The teacher came into the room with a box that had holes in it
Two friends had a plan, and they told no one about it
At the top of the stairs was a door that was always closed
Summer was nearly over when the last swallow asked for help
A little robot rolled down the road and did not know how to turn
Grandmother said that the tree was older than the whole village
The moon was so bright that night that even the owls were surprised
Long before there were any roads here, a giant lay down to rest
Somebody had eaten the cake, and it was not the dog
All the children ran outside, for the first snow had begun to fall
High up in the tower sat a clock that was afraid of noise
Down by the river, a turtle was looking for her left shoe)";

std::vector<std::string> words_of(std::string_view list) {
  std::vector<std::string> words;
  while (!list.empty()) {
    const auto end = std::min(list.find(' '), list.size());
    words.emplace_back(list.substr(0, end));
    list = end == list.size() ? std::string_view() : list.substr(end + 1);
  }
  return words;
}

}  // namespace

StoryOpenings::StoryOpenings(std::vector<std::string> lines) : lines_(std::move(lines)) {
  std::set<std::string_view> before;
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    const std::string_view line = lines_[i];
    const auto [at, fresh] = before.insert(line);
    if (!fresh) continue;
    // No earlier line has more words in common with it than its neighbours in alphabetical order.
    std::size_t known = 0;
    if (at != before.begin()) known = common_words(line, *std::prev(at));
    if (std::next(at) != before.end()) known = std::max(known, common_words(line, *std::next(at)));
    for (auto end = line.find(' ', known); end != line.npos; end = line.find(' ', end + 1))
      beginnings_.push_back({static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(end)});
  }
}

StoryPrompt story_prompt(const StoryParts& parts, std::uint64_t seed, std::uint64_t number) {
  core::Rng rng(seed, number);
  StoryPrompt prompt;
  prompt.noun = drawn(parts.nouns, rng);
  prompt.verb = drawn(parts.verbs, rng);
  prompt.adjective = drawn(parts.adjectives, rng);
  prompt.name = drawn(parts.names, rng);
  prompt.opening = drawn(parts.openings, rng);
  const auto count = 1 + rng.below(3);
  unsigned chosen = 0;
  while (static_cast<std::uint64_t>(__builtin_popcount(chosen)) < count)
    chosen |= 1U << rng.below(kStoryFeatures.size());
  for (std::size_t i = 0; i < kStoryFeatures.size(); ++i)
    if ((chosen >> i & 1U) != 0) prompt.features.push_back(kStoryFeatures[i]);
  return prompt;
}

std::string StoryPrompt::instruction(OpeningIn place) const {
  std::string text =
      "Tell a story of three to five short paragraphs that a small child understands, "
      "in simple words only. Use the character name \"";
  text.append(name).append("\", the verb \"").append(verb).append("\", the noun \"").append(noun);
  text.append("\" and the adjective \"").append(adjective).append("\".");
  for (const auto feature : features) {
    if (feature == "dialogue") text += " The characters talk with each other.";
    if (feature == "moral") text += " The story teaches something, without saying what.";
    if (feature == "twist") text += " Something happens that nobody expects.";
    if (feature == "conflict") text += " The characters want different things.";
    if (feature == "bad ending") text += " The story ends badly.";
    if (feature == "foreshadowing") text += " Early on there is a hint of what comes later.";
  }
  text += " Write nothing but the story";
  if (place == OpeningIn::answer) return text + ".";
  text += ", and go on from its first words: ";
  text.append(opening);
  return text;
}

std::string names_question() {
  return "Write down 100 first names that children can have, no two of them alike. Make it a "
         "numbered list with one name a line, and add nothing to it.";
}

std::string openings_question(std::uint64_t number) {
  std::string text = "Think of 100 ways in which a story for children can begin.";
  if (number % 2 == 1) text += " Let no two of them start with the same word.";
  text += " Make it a numbered list with one beginning a line, and add nothing to it.";
  return text;
}

StoryParts default_story_parts() {
  return {words_of(kNouns), words_of(kVerbs), words_of(kAdjectives), words_of(kNames),
      read_openings(kOpenings, "openings")};
}

namespace {

/// Returns the beginning of the answer in a request, or an empty text.
std::string opening_of(const core::Json& request, const std::string& origin) {
  const auto body = core::get<core::Json>(request, "body", origin);
  const auto messages = core::get<core::Json::array_t>(body, "messages", origin);
  if (messages.empty() || core::get<std::string>(messages.back(), "role", origin) != "assistant")
    return {};
  return core::get<std::string>(messages.back(), "content", origin);
}

bool before(const core::Digest& a, const core::Digest& b) {
  return std::pair(a.high, a.low) < std::pair(b.high, b.low);
}

/// One question and its parts.
struct Question {
  std::string instruction;
  std::string begun;  // beginning of the answer, or empty
  core::OrderedJson record;
};

std::string read_list(const std::string& path) {
  shard::UnpackedSource source(core::open_source(path));
  return core::read_utf8(source);
}

Question ask_story(const StoryPrompt& prompt, bool opening_in_answer, std::int64_t number) {
  Question question;
  question.instruction =
      prompt.instruction(opening_in_answer ? OpeningIn::answer : OpeningIn::instruction);
  if (opening_in_answer) question.begun = prompt.opening;
  question.record = {{"number", number}, {"prompt", question.instruction}, {"noun", prompt.noun},
      {"verb", prompt.verb}, {"adjective", prompt.adjective}, {"features", prompt.features},
      {"name", prompt.name}, {"opening", prompt.opening}};
  return question;
}

Question ask_list(const std::string& ask, std::int64_t number) {
  Question question;
  question.instruction =
      ask == "names" ? names_question() : openings_question(static_cast<std::uint64_t>(number));
  question.record = {{"number", number}, {"prompt", question.instruction}};
  return question;
}

}  // namespace

core::OrderedJson StoryRequest::json() const {
  core::OrderedJson body;
  body["model"] = model;
  body["messages"] = {{{"role", "user"}, {"content", instruction}}};
  if (!begun.empty()) {
    // Servers that continue an unfinished message need both settings: do not end it, and do not
    // begin another.
    body["messages"].push_back({{"role", "assistant"}, {"content", begun}});
    body["continue_final_message"] = true;
    body["add_generation_prompt"] = false;
  }
  body["temperature"] = temperature;
  body["max_tokens"] = max_tokens;
  core::OrderedJson json;
  json["custom_id"] = id;
  json["method"] = "POST";
  json["url"] = "/v1/chat/completions";
  json["body"] = body;
  return json;
}

AnswerOpenings::AnswerOpenings(core::ByteSource& requests) : file_(requests.name()) {
  core::SeparatedPieces lines(requests, "\n");
  std::string line;
  for (std::uint64_t number = 1; lines.next(line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const auto origin = fmt::format("{}:{}", file_, number);
    const auto request = core::parse_json_line(line, origin, {"custom_id", "body"});
    const auto id = core::hash128(core::get<std::string>(request, "custom_id", origin));
    requests_.push_back({id, &*distinct_.insert(opening_of(request, origin)).first});
  }
  sort();
}

void AnswerOpenings::sort() {
  std::sort(requests_.begin(), requests_.end(),
      [](const Request& a, const Request& b) { return before(a.id, b.id); });
  const auto twice = std::adjacent_find(requests_.begin(), requests_.end(),
      [](const Request& a, const Request& b) { return a.id == b.id && a.opening != b.opening; });
  if (twice != requests_.end())
    core::bad_data("{}: two requests, with '{}' and '{}', have the same custom_id", file_,
        *twice->opening, *(twice + 1)->opening);
}

const std::string& AnswerOpenings::of(const core::Json& answer, const std::string& origin) const {
  static const std::string kNone;
  if (file_.empty()) return kNone;
  const auto custom_id = core::get<std::string>(answer, "custom_id", origin);
  const auto id = core::hash128(custom_id);
  const auto found = std::lower_bound(requests_.begin(), requests_.end(), id,
      [](const Request& a, const core::Digest& b) { return before(a.id, b); });
  if (found == requests_.end() || found->id != id)
    core::bad_data("{}: its custom_id occurs in no request of {}: '{}'", origin, file_, custom_id);
  return *found->opening;
}

void StoryQuestionOptions::fields(core::FieldList& f) {
  f("count", n, "number of prompts").between(0, 1e12).short_name = 'n';
  f("first", first, "number of the first prompt, to generate parts of a sequence separately")
      .between(0, 1e12);
  f("ask", ask, "kind of prompts: for a story, or for a list that --names or --openings reads",
      {"story", "names", "openings"});
  f("words", words, "file of lines 'noun WORD', 'verb WORD', 'adjective WORD'");
  f("names", names, "file of first names, one per line");
  f("openings", openings, "file of openings, one per line; their first 1 to 12 words are used");
  f("opening-in", opening_in,
      "place of the opening: at the end of the instruction, or as the beginning of the answer",
      {"instruction", "answer"});
  f("output-format", form, "format of the lines", {"json", "text"});
  f("request", request, "write the requests of a batch for OpenAI's API instead",
      {"none", "openai"});
  f("model", model, "with --request: name of the model");
  f("temperature", temperature, "with --request: sampling temperature").between(0, 100);
  f("max-tokens", max_tokens, "with --request: maximum tokens of an answer").between(1, 1e9);
}

void StoryQuestionOptions::check() const {
  if ((request != "none") == model.empty())
    core::bad_usage("--request: requires --model, and --model requires it");
  if (ask == "story") return;
  const std::pair<const char*, bool> of_stories[] = {{"words", !words.empty()},
      {"names", !names.empty()}, {"openings", !openings.empty()},
      {"opening-in", opening_in != "instruction"}};
  for (const auto& [flag, given] : of_stories)
    if (given) core::bad_usage("--ask {}: --{} requires --ask story; leave it out", ask, flag);
}

StoryParts story_parts(const StoryQuestionOptions& options) {
  core::input_paths({options.words, options.names, options.openings});  // stdin is one of them
  StoryParts parts = default_story_parts();
  if (!options.words.empty()) read_story_words(read_list(options.words), options.words, parts);
  if (!options.names.empty())
    parts.names = read_first_names(read_list(options.names), options.names);
  if (!options.openings.empty())
    parts.openings = read_openings(read_list(options.openings), options.openings);
  return parts;
}

std::string story_question(const StoryQuestionOptions& options, const StoryParts& parts,
    std::int64_t seed, std::int64_t number) {
  const Question question = options.ask == "story"
                                ? ask_story(story_prompt(parts, static_cast<std::uint64_t>(seed),
                                                static_cast<std::uint64_t>(number)),
                                      options.opening_in == "answer", number)
                                : ask_list(options.ask, number);
  if (options.request != "none") {
    const StoryRequest request{fmt::format("{}-{}-{}", options.ask, seed, number), options.model,
        question.instruction, question.begun, options.temperature, options.max_tokens};
    return core::dump(request.json());
  }
  if (options.form == "json") return core::dump(question.record);
  return question.instruction + (question.begun.empty() ? "" : " ") + question.begun;
}

}  // namespace task
