package firewall

// HostAddrsEnv is the guard's variable with addresses of the engine's machine that it
// can't see from its own network, separated by commas. They are closed like a gateway:
// only a cidr rule that contains one opens it (B26).
const HostAddrsEnv = "WORKSHOP_HOST_ADDRESSES"
