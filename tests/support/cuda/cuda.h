// Nothing of the driver's interface is needed on the CPU: `hopper.h` stands in for what uses it.
#pragma once
