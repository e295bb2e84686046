package vrrp

import (
	"strconv"
	"time"
)

// MissedAdverts is how many adverts in a row a backup waits for before it takes over,
// besides the skew.
const MissedAdverts = 3

// Skew is for how long a backup of that priority leaves the VIP to better ones after a
// holder that is gone: a part of the interval with version 3 (RFC 9568 section 6.1), of a
// second with version 2 (RFC 3768 section 6.1).
func Skew(version int, interval time.Duration, priority int) time.Duration {
	if version == 2 {
		interval = time.Second
	}
	return time.Duration(256-priority) * interval / 256
}

// DownInterval is how long after the last advert a backup of that priority takes over:
// Active_Down_Interval of RFC 9568, Master_Down_Interval of RFC 3768, section 6.1.
func DownInterval(version int, interval time.Duration, priority int) time.Duration {
	return MissedAdverts*interval + Skew(version, interval, priority)
}

// LongestDownInterval bounds DownInterval for all priorities, where an interval of version
// 2 is a second or more.
func LongestDownInterval(interval time.Duration) time.Duration {
	return (MissedAdverts + 1) * interval
}

// MaxAdvertsPerSecond bounds what the holder of a VIP sends in unicast mode,
// where every advert goes to every peer (hard case 26).
const MaxAdvertsPerSecond = 2000

// PacedInterval stretches an advert interval (milliseconds) so that a holder
// with that many receivers stays within MaxAdvertsPerSecond, and rounds it up
// to what the version carries: 10 ms for 3, 1 s for 2.
func PacedInterval(ms, receivers, version int) int {
	step := 10
	if version == 2 {
		step = 1000
	}
	need := (receivers*1000 + MaxAdvertsPerSecond - 1) / MaxAdvertsPerSecond
	return (max(ms, need) + step - 1) / step * step
}

// Seconds is an advert interval in milliseconds as keepalived takes it, such as 0.04.
func Seconds(ms int) string { return strconv.FormatFloat(float64(ms)/1000, 'f', -1, 64) }
