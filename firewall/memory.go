package firewall

// Memory limits, in bytes. With every place of the guard taken and no peer reading
// both use less than 80 % of theirs, the kernel's buffers included.
const (
	// GuardMemory is a guard's, with the longest policy too. With 1,000 ordinary
	// connections it needs less than a tenth.
	GuardMemory = 512 << 20
	// RoomMemory is a room's. It idles with 10 MiB; the sockets to its published
	// ports are its own.
	RoomMemory = 96 << 20
)
