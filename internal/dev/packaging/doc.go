// Package packaging tests what `make dist` makes of the files in packaging/.
package packaging
