//go:build linux

package image

import (
	"encoding/binary"
	"testing"
)

// TestPackedSize: what zstd skips (RFC 8878, 3.1.2) is in no file of the image,
// and has its bounds all the same: it would be read, and pulled, for ever.
func TestPackedSize(t *testing.T) {
	img := imageOf(t, zstdTar, nil, layerOf(t, file("a", "1")), layerOf(t, file("b", "2")))
	skipped := binary.LittleEndian.AppendUint32([]byte{0x50, 0x2a, 0x4d, 0x18}, 1<<20)
	for i, l := range img.layers {
		img.layers[i] = append(append(l, skipped...), make([]byte, 1<<20)...)
	}
	img.seal(t)
	r := ref(t, "oci:"+layoutOf(t, img))
	refused(t, Options{Limits: Limits{Bytes: 1 << 20, Entries: 100}}, r, "its layers have more than the 1048576 bytes")
	if _, err := openStore(t, Options{Limits: Limits{Bytes: 2 << 20, Entries: 100}}).Get(t.Context(), r, "", nil); err != nil {
		t.Error(err)
	}
}
