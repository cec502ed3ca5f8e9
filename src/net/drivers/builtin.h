// One line per driver. An entry is defined in net/drivers/<name>/.
#pragma once

#include "net/driver.h"

namespace sterna::net {

extern const DriverEntry kShmDriver;
extern const DriverEntry kTcpDriver;

}  // namespace sterna::net
