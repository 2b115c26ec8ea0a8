package firewall

// Memory limits, in bytes. With every place of the guard taken and no peer reading,
// each uses less than 80 % of its own, including the kernel's buffers.
const (
	// GuardMemory is the limit of a guard, also with the longest policy. With 1,000
	// ordinary connections it needs less than a tenth.
	GuardMemory = 512 << 20
	// RoomMemory is the limit of a room. It idles with 10 MiB; sockets to its published
	// ports count as its own.
	RoomMemory = 96 << 20
	// OutletMemory is the limit of an outlet, with all its streams.
	OutletMemory = 320 << 20
)
