package firewall

// HostAddrsEnv is the guard's variable with addresses of the engine's machine that it
// can't see from its own network, separated by commas. They are closed like a gateway:
// only a cidr rule that contains one opens it (B26).
const HostAddrsEnv = "WORKSHOP_HOST_ADDRESSES"

// LoopbackAddrsEnv is the guard's variable with addresses by which its network leads to the
// loopback interface of the engine's machine, or may, separated by commas. They are closed
// like a loopback address: nothing opens one (B26).
const LoopbackAddrsEnv = "WORKSHOP_LOOPBACK_ADDRESSES"
