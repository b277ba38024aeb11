// The self-tests of a session, on a sound device and on devices whose safeguards are planted broken.
#include "harness/device/device_session.h"

#include <gtest/gtest.h>

#include "harness/device/simulated_device.h"

namespace twinbench {
namespace {

DeviceSession session_with(SimulatedFaults faults) {
  SimulatedDevice device(faults);
  return open_device_session(device, device, 0.01);
}

TEST(DeviceSession, ASoundDevicePassesBothSelfTests) {
  const DeviceSession session = session_with({});
  EXPECT_TRUE(session.hold.works) << session.hold.reason;
  EXPECT_TRUE(session.flush.works) << session.flush.reason;
  EXPECT_NEAR(session.empty_span_s, SimulatedDevice::kEvent, 1e-9);
  EXPECT_GE(session.empty_samples, 100u);
  EXPECT_GT(session.empty_wall_s, session.empty_span_s);
  EXPECT_NEAR(*session.clock_hz, SimulatedDevice::kNominalHz, 1);
}

TEST(DeviceSession, AFlushThatDoesNotFlushIsCaught) {
  const DeviceSession session = session_with({.flush_does_nothing = true});
  EXPECT_FALSE(session.flush.works);
  EXPECT_NE(session.flush.reason.find("not cold"), std::string::npos);
  EXPECT_TRUE(session.hold.works);
}

TEST(DeviceSession, AFlushThatRunsIntoTheWindowIsCaught) {
  const DeviceSession session = session_with({.flush_runs_late = true});
  EXPECT_FALSE(session.flush.works);
  EXPECT_NE(session.flush.reason.find("timed window"), std::string::npos);
}

TEST(DeviceSession, AMissingBlockingKernelIsCaught) {
  const DeviceSession session = session_with({.hold_does_nothing = true});
  EXPECT_FALSE(session.hold.works);
  EXPECT_GE(session.hold.held_span_s, session.hold.dawdled_s);
  EXPECT_TRUE(session.flush.works) << "the flush test must not need the blocking kernel: " << session.flush.reason;
}

TEST(DeviceSession, TheReferenceClockIsThatUnderLoad) {
  SimulatedDevice device;
  device.clock = [](std::int64_t sample) { return sample < 40 ? 0.1 : 0.9; };  // wakes up within the warm-up
  const DeviceSession session = open_device_session(device, device, 0.05);
  EXPECT_NEAR(*session.clock_hz, 0.9 * SimulatedDevice::kNominalHz, 1);
}

TEST(DeviceSession, AnUnknownClockStaysUnknown) {
  EXPECT_FALSE(session_with({.clock_unknown = true}).clock_hz.has_value());
}

TEST(DeviceSession, SurvivesTheRecord) {
  for (const auto& session : {session_with({}), session_with({.flush_does_nothing = true, .clock_unknown = true})})
    EXPECT_EQ(to_json(device_session_from(to_json(session))), to_json(session));
}

}  // namespace
}  // namespace twinbench
