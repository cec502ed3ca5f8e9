// One line per driver and decorator. An entry is defined in net/drivers/<name>/, or decorators/.
#pragma once

#include "net/driver.h"
#include "net/drivers/choice.h"

namespace sterna::net {

extern const DriverEntry kFabricDriver;
extern const DriverEntry kReplayDriver;
extern const DriverEntry kShmDriver;
extern const DriverEntry kTcpDriver;
extern const DriverEntry kUnixDriver;

extern const DecoratorEntry kCorruptDecorator;
extern const DecoratorEntry kCountDecorator;
extern const DecoratorEntry kCutDecorator;
extern const DecoratorEntry kDelayDecorator;
extern const DecoratorEntry kDropDecorator;
extern const DecoratorEntry kDuplicateDecorator;
extern const DecoratorEntry kRecordDecorator;
extern const DecoratorEntry kReorderDecorator;
extern const DecoratorEntry kTraceDecorator;

}  // namespace sterna::net
