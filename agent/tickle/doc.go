// Package tickle notifies the clients of a VIP when the node that held it died.
//
// A client that only listens, for example to a watch, would not notice: the dead node is
// silent, and the new holder does not know the connection. So the holder of a VIP sends
// the list of its clients to its peers. The peer that acquires the VIP sends each client
// an ACK with an unexpected sequence number. The client answers with an ACK (RFC 9293
// section 3.10.7.4), to which the new holder's kernel replies, as for any unknown
// connection, with a reset that has the right number (RFC 9293 section 3.5.2). Samba's
// cluster (CTDB) does the same, and calls it a tickle ACK.
//
// The ACK itself ends nothing. A connection ends only if its client's packets reach a
// node that does not know it, so that it is dead anyway; if the node does know it, for
// example because the VIP returned, it continues.
package tickle
