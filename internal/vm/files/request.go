package files

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Operations of linux/fuse.h that a guest may ask for.
const (
	opLookup      = 1
	opForget      = 2
	opGetattr     = 3
	opSetattr     = 4
	opReadlink    = 5
	opSymlink     = 6
	opMknod       = 8
	opMkdir       = 9
	opUnlink      = 10
	opRmdir       = 11
	opRename      = 12
	opLink        = 13
	opOpen        = 14
	opRead        = 15
	opWrite       = 16
	opStatfs      = 17
	opRelease     = 18
	opFsync       = 20
	opSetxattr    = 21
	opGetxattr    = 22
	opListxattr   = 23
	opRemovexattr = 24
	opFlush       = 25
	opInit        = 26
	opOpendir     = 27
	opReaddir     = 28
	opReleasedir  = 29
	opFsyncdir    = 30
	opCreate      = 35
	opDestroy     = 38
	opBatchForget = 42
	opFallocate   = 43
	opReaddirplus = 44
	opRename2     = 45
	opLseek       = 46
	opCopyRange   = 47
	opTmpfile     = 51
)

var operations = func() (known [64]bool) {
	for _, op := range []int{
		opLookup, opForget, opGetattr, opSetattr, opReadlink, opSymlink, opMknod, opMkdir, opUnlink, opRmdir,
		opRename, opLink, opOpen, opRead, opWrite, opStatfs, opRelease, opFsync, opSetxattr, opGetxattr,
		opListxattr, opRemovexattr, opFlush, opInit, opOpendir, opReaddir, opReleasedir, opFsyncdir, opCreate,
		opDestroy, opBatchForget, opFallocate, opReaddirplus, opRename2, opLseek, opCopyRange, opTmpfile,
	} {
		known[op] = true
	}
	return known
}()

// Of struct fuse_in_header and fuse_out_header.
const (
	inHeaderSize  = 40
	outHeaderSize = 16
)

// pollNode is a node of go-fuse's own, for kernels that mount here.
const pollNode = ^uint64(0)

// States of a share: a guest mounts it once.
const (
	fresh int32 = iota
	mounting
	mounted
)

// request answers one request of the guest, of which in and out are private copies. An
// error is a breach of the protocol, which ends the session.
func (s *share) request(in, out []byte) (int, error) {
	if len(in) < inHeaderSize {
		return 0, fmt.Errorf("a request has %d bytes", len(in))
	}
	length, op := binary.NativeEndian.Uint32(in), binary.NativeEndian.Uint32(in[4:])
	if uint64(length) != uint64(len(in)) {
		return 0, fmt.Errorf("a request of %d bytes says it has %d", len(in), length)
	}
	answered := op != opForget && op != opBatchForget
	fail := func(errno unix.Errno) (int, error) { return s.refuse(in, out, answered, errno) }
	switch {
	case op >= uint32(len(operations)) || !operations[op]:
		return fail(unix.ENOSYS)
	case binary.NativeEndian.Uint16(in[36:]) != 0: // extensions, which were not offered
		return fail(unix.EINVAL)
	case binary.NativeEndian.Uint64(in[16:]) == pollNode:
		return fail(unix.ESTALE)
	case op == opInit && !s.state.CompareAndSwap(fresh, mounting):
		return fail(unix.EBUSY)
	case op != opInit && s.state.Load() != mounted:
		return 0, errors.New("a request came before the share was mounted")
	}
	if node := binary.NativeEndian.Uint64(in[16:]); answered && s.gate.pin(node) {
		defer s.gate.unpin(node)
	}
	n, status := s.protocol.HandleRequest([][]byte{in}, [][]byte{out})
	if op == opInit && status.Ok() {
		s.state.Store(mounted)
	}
	if err := s.broken.Load(); err != nil {
		return 0, *err
	}
	if n == 0 && answered {
		return fail(unix.EIO) // without room for the answer, or too short
	}
	return n, nil
}

// refuse answers with an error.
func (s *share) refuse(in, out []byte, answered bool, errno unix.Errno) (int, error) {
	if !answered {
		return 0, nil
	}
	if len(out) < outHeaderSize {
		return 0, fmt.Errorf("a request has room for %d bytes of an answer", len(out))
	}
	binary.NativeEndian.PutUint32(out, outHeaderSize)
	binary.NativeEndian.PutUint32(out[4:], uint32(-int32(errno)))
	copy(out[8:outHeaderSize], in[8:16])
	return outHeaderSize, nil
}
