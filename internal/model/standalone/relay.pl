# relay SOCKET ADDRESS HOST...: listens on ADDRESS, and carries bytes between its
# connections and the server's socket. Of each it reads the first request's head: a page
# whose name was made to resolve to 127.0.0.1 (DNS rebinding) asks for that name, and is
# refused. A browser's connection is for one name, so the first request tells.
use strict;
use warnings;
use Errno qw(EAGAIN EINTR);
use IO::Select;
use IO::Socket::INET;
use IO::Socket::UNIX;

my ($most, $longest, $patience) = (200, 65536, 10);   # connections, bytes and seconds of a head
my ($socket, $address, %named) = (shift, shift);
$named{lc $_} = 1 for map { split } @ARGV;
$SIG{PIPE} = "IGNORE";
$SIG{TERM} = $SIG{INT} = sub { exit 0 };   # else PID 1 ignores them

my $listener = IO::Socket::INET->new(LocalAddr => $address, Listen => 64, ReuseAddr => 1) or die "relay: $address: $@\n";
$listener->blocking(0);
my ($read, $write) = (IO::Select->new($listener), IO::Select->new);
my %end;   # by descriptor: socket, peer, out (bytes to write), ended; a client's: head and since
my $clients = 0;

sub add {
	my $e = {socket => $_[0], out => "", @_[1 .. $#_]};
	$e->{socket}->blocking(0);
	$read->add($e->{socket});
	return $end{fileno $e->{socket}} = $e;
}

sub drop {
	my @both = grep { defined } $_[0], $_[0]{peer};
	for my $e (@both) {
		delete $end{fileno $e->{socket}};
		$_->remove($e->{socket}) for $read, $write;
		$clients-- if $e->{client};
		close $e->{socket};
		delete $e->{peer};
	}
}

sub refuse {
	my ($e, $status, $why) = @_;
	my $body = qq({"error":{"message":"$why","type":"relay_error"}}\n);
	syswrite $e->{socket}, "HTTP/1.1 $status\r\nContent-Type: application/json\r\nContent-Length: " . length($body) . "\r\nConnection: close\r\n\r\n$body";
	drop($e);
}

# flush writes what waits for an end; its peer is read again when all is written.
sub flush {
	my $e = shift;
	my $n = syswrite $e->{socket}, $e->{out};
	return $!{EAGAIN} || $!{EINTR} ? $write->add($e->{socket}) : drop($e) unless defined $n;
	substr $e->{out}, 0, $n, "";
	return $write->add($e->{socket}) if length $e->{out};
	$write->remove($e->{socket});
	$read->add($e->{peer}{socket}) unless $e->{peer}{ended};
}

sub carry {
	my ($e, $bytes) = @_;
	$read->remove($e->{socket});
	$e->{peer}{out} = $bytes;
	flush($e->{peer});
}

# admit connects a client to the server, once its request's head is whole.
sub admit {
	my $e = shift;
	my ($head) = $e->{head} =~ /\A(.*?\r?\n)\r?\n/s;
	return length $e->{head} > $longest ? refuse($e, "431 Request Header Fields Too Large", "the request's head is too long") : undef unless defined $head;
	my @hosts = $head =~ /^Host:[ \t]*(\S*?)(?::\d+)?[ \t]*\r?$/mig;
	return refuse($e, "403 Forbidden", "this Host is not served; LOCAL_LLM_HOSTS names those that are") unless @hosts == 1 && $named{lc $hosts[0]};
	my $server = IO::Socket::UNIX->new(Peer => $socket) or return refuse($e, "503 Service Unavailable", "the server does not run yet, or any more");
	$e->{peer} = add($server, peer => $e);
	carry($e, delete $e->{head});
}

sub take {
	my $e = shift;
	my $n = sysread $e->{socket}, my $bytes, 65536;
	return $!{EAGAIN} || $!{EINTR} ? undef : drop($e) unless defined $n;
	if ($n > 0) {
		return carry($e, $bytes) if $e->{peer};
		$e->{head} .= $bytes;
		return admit($e);
	}
	return drop($e) if !$e->{peer} || $e->{peer}{ended};
	$read->remove($e->{socket});
	$e->{ended} = 1;
	shutdown $e->{peer}{socket}, 1;   # all was written: else this end were not read
}

while (1) {
	my ($readable, $writable) = IO::Select->select($read, $write, undef, 1);
	for my $s (@{$writable || []}) {
		my $e = $end{fileno $s // -1};
		flush($e) if $e;
	}
	for my $s (@{$readable || []}) {
		if ($s == $listener) {
			my $client = $listener->accept or next;
			my $e = add($client, client => 1, head => "", since => time);
			refuse($e, "503 Service Unavailable", "too many connections") if ++$clients > $most;
			next;
		}
		my $e = $end{fileno $s // -1};
		take($e) if $e;
	}
	my @late = grep { !$_->{peer} && time - $_->{since} > $patience } values %end;
	drop($_) for @late;
}
