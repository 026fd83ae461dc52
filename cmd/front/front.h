#pragma once
// Between a program's front and libtessera.so.

namespace front {

/// The front's own: the program's name, and what cli::offer_of() gives of it. Generated.
extern const char* const kProgram;
extern const char* const kOffer;

using Main = int (*)(int, char**);
/// The main of a program in libtessera.so, by its name there.
using MainOf = Main (*)(const char*);
inline constexpr const char* kMainOf = "tessera_main_of";

/// The offer of a program in libtessera.so as C++, in memory of malloc().
using OfferOf = char* (*)(const char*);
inline constexpr const char* kOfferOf = "tessera_offer_of";

}  // namespace front
