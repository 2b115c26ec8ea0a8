package workshop

// The limits of what Load reads (promise B60). They are far above what people
// write and low enough that no file costs more than some ten megabytes or a
// second.
const (
	// MaxFileSize of workshop.yaml, in bytes.
	MaxFileSize = 1 << 20
	// maxEnvFileSize of `.env` and of the files of --env-file, in bytes.
	maxEnvFileSize = 256 << 10
	// maxDepth of nested lists and mappings. Our own keys nest 7 deep.
	maxDepth = 64
	// maxNodes is the number of values in the file after aliases are
	// expanded, so that aliases of aliases can't multiply.
	maxNodes = 100_000
	// maxWorkers of one workshop.
	maxWorkers = 1024
	// maxGranted is the number of mounts, variables, rules, secrets, caches and
	// ports of all workers together: each has those of the workshop.
	maxGranted = 100_000
	// maxWorkerFiles is what the files of all workers have together, in bytes.
	maxWorkerFiles = 16 << 20
	// maxItems of every other list and mapping: mounts, allow, env …
	maxItems = 10_000
	// maxScalar is the length of one value after variables are put in, in
	// bytes.
	maxScalar = 64 << 10
	// maxExcluded patterns of one mount, the alternatives of their braces
	// counted: each is tried on each file.
	maxExcluded = 1024
	// maxEnvWork of one file of variables: the bytes of each statement, times
	// the variables in it and one.
	maxEnvWork = 4 << 20
	// maxEnvValues of one file of variables in all, in bytes, once its
	// variables are put in.
	maxEnvValues = 1 << 20
	// maxProblems that are reported for one file; the rest is counted.
	maxProblems = 100
	// maxLinks is how many symbolic links are followed for one mount source,
	// as in the Linux kernel (MAXSYMLINKS, include/linux/namei.h).
	maxLinks = 40
	// maxParts and maxWay, in bytes, of a path whose links are followed.
	maxParts = 256
	maxWay   = 4096
)
