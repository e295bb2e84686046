package vrrp

import (
	"strconv"
	"time"
)

// MissedAdverts is the number of consecutive missed adverts, plus the skew, after which a
// backup takes over.
const MissedAdverts = 3

// Skew returns how long a backup of a priority waits for better ones once the holder is
// gone: a part of the interval in version 3 (RFC 9568 section 6.1), of a second in
// version 2 (RFC 3768 section 6.1).
func Skew(version int, interval time.Duration, priority int) time.Duration {
	if version == 2 {
		interval = time.Second
	}
	return time.Duration(256-priority) * interval / 256
}

// DownInterval returns how long after the last advert a backup of a priority takes over:
// Active_Down_Interval of RFC 9568, Master_Down_Interval of RFC 3768, section 6.1.
func DownInterval(version int, interval time.Duration, priority int) time.Duration {
	return MissedAdverts*interval + Skew(version, interval, priority)
}

// LongestDownInterval bounds DownInterval for all priorities, given that intervals of
// version 2 are at least a second.
func LongestDownInterval(interval time.Duration) time.Duration {
	return (MissedAdverts + 1) * interval
}

// MaxAdvertsPerSecond bounds the adverts of a VIP's holder in unicast mode, in which
// every advert goes to every peer (hard case 26).
const MaxAdvertsPerSecond = 2000

// PacedInterval returns an advert interval (milliseconds), stretched so that a holder
// with that many receivers stays within MaxAdvertsPerSecond, and rounded up to the
// resolution of the version: 10 ms for 3, 1 s for 2.
func PacedInterval(ms, receivers, version int) int {
	step := 10
	if version == 2 {
		step = 1000
	}
	need := (receivers*1000 + MaxAdvertsPerSecond - 1) / MaxAdvertsPerSecond
	return (max(ms, need) + step - 1) / step * step
}

// Seconds formats an advert interval in milliseconds for keepalived, such as 0.04.
func Seconds(ms int) string { return strconv.FormatFloat(float64(ms)/1000, 'f', -1, 64) }
