package guest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/llmdo/workshop/internal/carrier"
	"github.com/llmdo/workshop/internal/made"
)

// tell calls say with each line until the end; a longer one is several. What the worker's
// PID 1 says of its container is left out: that of the machine's counts, which it isn't in.
func tell(from io.ReadCloser, say func(line string)) {
	defer from.Close()
	r := bufio.NewReaderSize(from, carrier.MaxLine)
	for begins, left := true, false; ; {
		piece, err := r.ReadSlice('\n')
		if begins {
			left = bytes.HasPrefix(piece, []byte(made.Prefix))
		}
		line, whole := bytes.CutSuffix(piece, []byte("\n"))
		if len(piece) > 0 && !left {
			say(string(line))
		}
		if begins = whole; err != nil && err != bufio.ErrBufferFull {
			return
		}
	}
}

// reserved is memory that the worker doesn't get: this process's, and of the kernel what no
// control group counts. So at its limit it is the worker that the kernel takes a process
// from, and its tools say so.
const reserved = 16 << 20

// memoryFor is the worker's memory limit: what was asked for (0: all), as far as there is.
func memoryFor(asked int64) (int64, error) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	return limit(string(text), asked)
}

func limit(meminfo string, asked int64) (int64, error) {
	_, rest, _ := strings.Cut(meminfo, "\nMemAvailable:")
	var kB int64
	if _, err := fmt.Sscanf(rest, "%d kB", &kB); err != nil {
		return 0, fmt.Errorf("/proc/meminfo: no MemAvailable: %w", err)
	}
	most := kB<<10 - reserved
	if most < reserved {
		return 0, fmt.Errorf("the machine has %d MiB left for its worker, give it more memory", max(0, most>>20))
	}
	if asked > 0 {
		most = min(most, asked)
	}
	return most, nil
}
