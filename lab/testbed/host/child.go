package host

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Child returns the only child of a process.
func Child(pid int) (int, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(data)))
}
