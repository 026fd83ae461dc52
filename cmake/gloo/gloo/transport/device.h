#pragma once
// Declarations alone: see cmake/gloo/README.
namespace gloo::transport {
class Device;
}
