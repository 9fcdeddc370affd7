// SHA-256 against the examples of FIPS 180-4, and its versions against each other.
#include <random>
#include <string>

#include "files/sha256.hpp"
#include "tests/check.hpp"

using namespace qwyc::files;

namespace {

std::string digest(Sha256::Compress compress, std::string_view text, size_t part) {
    Sha256 sha(compress);
    for (size_t at = 0; at < text.size(); at += part) sha.add(text.substr(at, part));
    return sha.hex();
}

}  // namespace

TEST(known_digests) {
    const std::string million(1'000'000, 'a');
    for (const auto compress : {Sha256::portable(), Sha256::instructions()}) {
        if (!compress) continue;
        CHECK_EQUAL(
            digest(compress, "", 1),
            std::string("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"));
        CHECK_EQUAL(
            digest(compress, "abc", 3),
            std::string("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
        CHECK_EQUAL(
            digest(compress, "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 7),
            std::string("248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"));
        CHECK_EQUAL(
            digest(compress, million, 999),
            std::string("cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"));
    }
}

TEST(both_versions_agree_at_every_length) {
    if (!Sha256::instructions()) return;
    std::mt19937 random(0);
    for (size_t n = 0; n < 300; ++n) {
        std::string text(n, '\0');
        for (char& c : text) c = static_cast<char>(random());
        const size_t part = 1 + random() % 100;
        CHECK_EQUAL(digest(Sha256::portable(), text, 64),
                    digest(Sha256::instructions(), text, part));
    }
}

TEST(two_messages_in_one_pass_are_as_if_alone) {
    std::mt19937 random(1);
    for (int round = 0; round < 300; ++round) {
        std::string text[2], alone[2];
        Message message[2];
        for (int k = 0; k < 2; ++k) {
            text[k].resize(random() % (round % 2 ? 200 : 5000));
            for (char& c : text[k]) c = static_cast<char>(random());
            alone[k] = digest(Sha256::portable(), text[k], 64);
            for (size_t at = 0; at < text[k].size();) {  // in pieces of any size, empty ones too
                const size_t n = random() % (random() % 4 ? 100 : 1000);
                const auto piece = std::string_view(text[k]).substr(at, n);
                at += piece.size();
                if (random() % 2)
                    message[k].keep(std::string(piece));
                else
                    message[k].add(piece);
            }
        }
        const auto [first, second] = Sha256::hex_of_both(message[0], message[1]);
        CHECK_EQUAL(first, alone[0]);
        CHECK_EQUAL(second, alone[1]);
    }
    CHECK_EQUAL(Sha256::hex_of_both({}, {}).first, digest(Sha256::portable(), "", 1));
}
