#pragma once
// The interface between a program's front and libtessera.so.

namespace front {

/// Generated for each front: the program's name, and the text of cli::offer_of() for the program.
extern const char* const kProgram;
extern const char* const kOffer;

using Main = int (*)(int, char**);
/// Returns the main function of a program in libtessera.so, by the program's name.
using MainOf = Main (*)(const char*);
inline constexpr const char* kMainOf = "tessera_main_of";

/// Returns the offer of a program in libtessera.so as C++ source, allocated with malloc().
using OfferOf = char* (*)(const char*);
inline constexpr const char* kOfferOf = "tessera_offer_of";

}  // namespace front
