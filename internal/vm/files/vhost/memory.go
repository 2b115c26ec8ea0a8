package vhost

import (
	"errors"
	"fmt"
	"math/bits"

	"golang.org/x/sys/unix"
)

// maxRegions is how many regions a table of memory has at most
// (VHOST_MEMORY_BASELINE_NREGIONS, vhost-user.rst).
const maxRegions = 8

// region is a part of the guest's memory, mapped here.
type region struct {
	guest uint64 // the first physical address in the guest
	user  uint64 // the first address in the hypervisor's process, which ring addresses use
	data  []byte
}

// memory is all of the guest's memory that devices may use.
type memory []region

// mapRegion maps size bytes of a descriptor from an offset. It refuses memory that could
// shrink later: touching what is no longer there would end this process.
func mapRegion(fd int, guest, user, size, offset uint64) (region, error) {
	for _, first := range []uint64{guest, user, offset} {
		if _, carry := bits.Add64(first, size, 0); carry != 0 {
			return region{}, errors.New("a region of memory wraps around")
		}
	}
	if size == 0 || offset+size > 1<<62 {
		return region{}, fmt.Errorf("a region of memory has %d bytes at %d", size, offset)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return region{}, fmt.Errorf("a region of memory: %w", err)
	}
	seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil || seals&unix.F_SEAL_SHRINK == 0 {
		return region{}, errors.New("a region of memory is not a memfd that is sealed against shrinking")
	}
	if uint64(st.Size) < offset+size {
		return region{}, fmt.Errorf("a region of memory ends at %d, its memfd at %d", offset+size, st.Size)
	}
	data, err := unix.Mmap(fd, int64(offset), int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_NORESERVE)
	if err != nil {
		return region{}, fmt.Errorf("map a region of memory: %w", err)
	}
	_ = unix.Madvise(data, unix.MADV_DONTDUMP)
	return region{guest, user, data}, nil
}

func (m memory) unmap() {
	for _, r := range m {
		_ = unix.Munmap(r.data)
	}
}

// at returns n bytes at a physical address of the guest, which must be in one region.
func (m memory) at(addr, n uint64) ([]byte, error) {
	for _, r := range m {
		if b := r.slice(addr-r.guest, n); addr >= r.guest && b != nil {
			return b, nil
		}
	}
	return nil, fmt.Errorf("%d bytes at %#x are not in the guest's memory", n, addr)
}

// atUser is at for an address in the hypervisor's process.
func (m memory) atUser(addr, n uint64) ([]byte, error) {
	for _, r := range m {
		if b := r.slice(addr-r.user, n); addr >= r.user && b != nil {
			return b, nil
		}
	}
	return nil, fmt.Errorf("%d bytes at the hypervisor's %#x are not in the guest's memory", n, addr)
}

// slice returns n bytes from an offset, or nil.
func (r region) slice(off, n uint64) []byte {
	if size := uint64(len(r.data)); off > size || n > size-off {
		return nil
	}
	return r.data[off : off+n : off+n]
}
