"""What programs look at before they connect. There is no network in the sandbox, so nothing is ever encrypted."""

import enum
import socket

OPENSSL_VERSION = "OpenSSL 3.0.0 (a stand-in: there is no network in the sandbox)"
OPENSSL_VERSION_INFO = (3, 0, 0, 0, 0)
OPENSSL_VERSION_NUMBER = 0x30000000
HAS_SNI = HAS_ALPN = HAS_ECDH = HAS_TLSv1_2 = HAS_TLSv1_3 = HAS_NEVER_CHECK_COMMON_NAME = True
HAS_NPN = HAS_PSK = HAS_SSLv2 = HAS_SSLv3 = HAS_TLSv1 = HAS_TLSv1_1 = False
CHANNEL_BINDING_TYPES = []

_NO_NETWORK = "there is no network in the sandbox"


class TLSVersion(enum.IntEnum):
    MINIMUM_SUPPORTED = -2
    SSLv3 = 768
    TLSv1 = 769
    TLSv1_1 = 770
    TLSv1_2 = 771
    TLSv1_3 = 772
    MAXIMUM_SUPPORTED = -1


class _SSLMethod(enum.IntEnum):
    PROTOCOL_TLS = 2
    PROTOCOL_SSLv23 = 2
    PROTOCOL_TLSv1 = 3
    PROTOCOL_TLSv1_1 = 4
    PROTOCOL_TLSv1_2 = 5
    PROTOCOL_TLS_CLIENT = 16
    PROTOCOL_TLS_SERVER = 17


class VerifyMode(enum.IntEnum):
    CERT_NONE = 0
    CERT_OPTIONAL = 1
    CERT_REQUIRED = 2


class VerifyFlags(enum.IntFlag):
    VERIFY_DEFAULT = 0
    VERIFY_CRL_CHECK_LEAF = 4
    VERIFY_CRL_CHECK_CHAIN = 12
    VERIFY_X509_STRICT = 32
    VERIFY_ALLOW_PROXY_CERTS = 64
    VERIFY_X509_TRUSTED_FIRST = 32768
    VERIFY_X509_PARTIAL_CHAIN = 524288


class Options(enum.IntFlag):
    OP_ALL = 0x80000050
    OP_NO_SSLv2 = 0
    OP_NO_SSLv3 = 0x2000000
    OP_NO_TLSv1 = 0x4000000
    OP_NO_TLSv1_1 = 0x10000000
    OP_NO_TLSv1_2 = 0x8000000
    OP_NO_TLSv1_3 = 0x20000000
    OP_NO_COMPRESSION = 0x20000
    OP_NO_TICKET = 0x4000
    OP_NO_RENEGOTIATION = 0x40000000
    OP_CIPHER_SERVER_PREFERENCE = 0x400000
    OP_SINGLE_DH_USE = 0
    OP_SINGLE_ECDH_USE = 0
    OP_IGNORE_UNEXPECTED_EOF = 0x80
    OP_ENABLE_MIDDLEBOX_COMPAT = 0x100000


class Purpose(enum.Enum):
    SERVER_AUTH = "1.3.6.1.5.5.7.3.1"
    CLIENT_AUTH = "1.3.6.1.5.5.7.3.2"


for _kind in (_SSLMethod, VerifyMode, VerifyFlags, Options):
    globals().update(_kind.__members__)


class SSLError(OSError):
    """Something went wrong with an encrypted connection."""


class SSLZeroReturnError(SSLError):
    pass


class SSLWantReadError(SSLError):
    pass


class SSLWantWriteError(SSLError):
    pass


class SSLSyscallError(SSLError):
    pass


class SSLEOFError(SSLError):
    pass


class SSLCertVerificationError(SSLError, ValueError):
    pass


CertificateError = SSLCertVerificationError


class SSLSocket(socket.socket):
    """Never made: see `SSLContext.wrap_socket`."""


class SSLObject:
    """Never made: see `SSLContext.wrap_bio`."""


class SSLSession:
    pass


class MemoryBIO:
    def __init__(self):
        raise SSLError(_NO_NETWORK)


class SSLContext:
    """Settings of connections that cannot be made."""

    sslsocket_class = SSLSocket
    sslobject_class = SSLObject

    def __init__(self, protocol=PROTOCOL_TLS_CLIENT):  # noqa: F821
        self.protocol = _SSLMethod(protocol)
        is_client = self.protocol == _SSLMethod.PROTOCOL_TLS_CLIENT
        self.verify_mode = VerifyMode.CERT_REQUIRED if is_client else VerifyMode.CERT_NONE
        self.check_hostname = is_client
        self.verify_flags = VerifyFlags.VERIFY_X509_TRUSTED_FIRST
        self.options = Options.OP_ALL
        self.minimum_version, self.maximum_version = TLSVersion.TLSv1_2, TLSVersion.MAXIMUM_SUPPORTED
        self.post_handshake_auth = self.hostname_checks_common_name = False
        self.keylog_filename = self.sni_callback = None

    def _nothing(self, *args, **kwargs):
        """Accepted, and without effect."""

    set_ciphers = set_alpn_protocols = set_npn_protocols = set_default_verify_paths = set_ecdh_curve = _nothing
    load_cert_chain = load_verify_locations = load_default_certs = load_dh_params = _nothing

    def get_ca_certs(self, binary_form=False):
        return []

    def get_ciphers(self):
        return []

    def cert_store_stats(self):
        return {"x509": 0, "crl": 0, "x509_ca": 0}

    def session_stats(self):
        return {}

    def wrap_socket(self, *args, **kwargs):
        raise SSLError(_NO_NETWORK)

    wrap_bio = wrap_socket


def create_default_context(purpose=Purpose.SERVER_AUTH, *, cafile=None, capath=None, cadata=None):
    """Settings for a client or for a server."""
    protocol = _SSLMethod.PROTOCOL_TLS_CLIENT if purpose is Purpose.SERVER_AUTH else _SSLMethod.PROTOCOL_TLS_SERVER
    return SSLContext(protocol)


_create_default_https_context = create_default_context


def _create_unverified_context(*args, **kwargs):
    context = SSLContext()
    context.check_hostname, context.verify_mode = False, VerifyMode.CERT_NONE
    return context


def get_server_certificate(*args, **kwargs):
    raise SSLError(_NO_NETWORK)


def RAND_bytes(count, /):
    """Random bytes."""
    import os

    return os.urandom(count)
