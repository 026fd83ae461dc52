#pragma once
// Of gloo's, empty: see cmake/gloo/README.
