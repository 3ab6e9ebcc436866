//! Finite fields: GF(q) for every prime power q.

use alloc::vec::Vec;

/// The field of q = pᵐ elements.
///
/// An element is a polynomial in x of degree below m with coefficients modulo p. It is written as
/// the number whose digits in base p are the coefficients. So 0 is zero, 1 is one, and for a prime
/// q the elements are the integers modulo q.
pub(super) struct Field {
    /// The prime p.
    prime: u32,
    /// x⁰, x¹, x², ...: every element except zero, once.
    powers: Vec<u32>,
    /// The exponent of each element in `powers`. The entry of zero has no meaning.
    logs: Vec<u32>,
}

impl Field {
    /// The field of `order` elements, or `None` if `order` is not a prime power.
    pub(super) fn new(order: u32) -> Option<Self> {
        let prime = prime_of(order)?;
        // The value chosen for xᵐ determines multiplication. If the powers of x then run through
        // all elements except zero, each of these has an inverse: the chosen polynomial is
        // irreducible, and even primitive. Such a polynomial exists for every prime power.
        let powers = (1..order).find_map(|top| powers_of_x(prime, order, top))?;
        let mut logs = alloc::vec![0; order as usize];
        for (exponent, element) in (0..).zip(&powers) {
            logs[*element as usize] = exponent;
        }
        Some(Self { prime, powers, logs })
    }

    /// a + b.
    pub(super) fn add(&self, a: u32, b: u32) -> u32 {
        add_multiple(self.prime, a, 1, b)
    }

    /// a - b.
    pub(super) fn sub(&self, a: u32, b: u32) -> u32 {
        add_multiple(self.prime, a, self.prime - 1, b)
    }

    /// a · b.
    pub(super) fn mul(&self, a: u32, b: u32) -> u32 {
        if a == 0 || b == 0 {
            return 0;
        }
        let exponent = self.logs[a as usize] as usize + self.logs[b as usize] as usize;
        self.powers[exponent % self.powers.len()]
    }

    /// 1 / a, or 0 for 0.
    pub(super) fn inverse(&self, a: u32) -> u32 {
        if a == 0 {
            return 0;
        }
        let exponent = self.powers.len() - self.logs[a as usize] as usize;
        self.powers[exponent % self.powers.len()]
    }
}

/// The prime of which `order` is a power.
pub(super) fn prime_of(order: u32) -> Option<u32> {
    let divides = |p: &u32| order.is_multiple_of(*p);
    let prime = (2..=order.isqrt()).find(divides).unwrap_or(order);
    let mut rest = order;
    while prime > 1 && rest.is_multiple_of(prime) {
        rest /= prime;
    }
    (prime > 1 && rest == 1).then_some(prime)
}

/// The powers of x, beginning with 1, if xᵐ = `top`; `None` unless they are all elements except
/// zero.
fn powers_of_x(prime: u32, order: u32, top: u32) -> Option<Vec<u32>> {
    let highest = order / prime; // The place value of the digit that multiplying by x shifts out.
    let mut powers = alloc::vec![1];
    loop {
        let last = powers[powers.len() - 1];
        let next = add_multiple(prime, last % highest * prime, last / highest, top);
        match next {
            1 => return (powers.len() + 1 == order as usize).then_some(powers),
            _ if powers.len() + 1 == order as usize => return None,
            _ => powers.push(next),
        }
    }
}

/// a + factor · b, digit by digit modulo `prime`.
fn add_multiple(prime: u32, mut a: u32, factor: u32, mut b: u32) -> u32 {
    let (mut sum, mut place) = (0, 1);
    while a > 0 || b > 0 {
        sum += (a % prime + factor * (b % prime)) % prime * place;
        (a, b, place) = (a / prime, b / prime, place * prime);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_exist_for_prime_powers_only() {
        let orders: Vec<_> = (0..=32).filter(|q| Field::new(*q).is_some()).collect();
        assert_eq!(
            orders,
            [2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, 29, 31, 32],
            "there is no field of 6, 10 or 12 elements"
        );
        assert_eq!(prime_of(4096), Some(2));
        assert_eq!(prime_of(4093), Some(4093));
        assert_eq!(prime_of(4095), None);
    }

    #[test]
    fn the_axioms_hold() {
        for q in 2..=32 {
            let Some(f) = Field::new(q) else { continue };
            for a in 0..q {
                assert_eq!((f.add(a, 0), f.mul(a, 1), f.mul(a, 0)), (a, a, 0));
                assert_eq!(f.sub(a, a), 0);
                assert_eq!(f.mul(a, f.inverse(a)), u32::from(a != 0));
                for b in 0..q {
                    assert!(f.add(a, b) < q && f.mul(a, b) < q);
                    assert_eq!(f.add(a, b), f.add(b, a));
                    assert_eq!(f.mul(a, b), f.mul(b, a));
                    assert_eq!(f.add(f.sub(a, b), b), a);
                    for c in 0..q {
                        assert_eq!(f.add(f.add(a, b), c), f.add(a, f.add(b, c)));
                        assert_eq!(f.mul(f.mul(a, b), c), f.mul(a, f.mul(b, c)));
                        assert_eq!(f.mul(a, f.add(b, c)), f.add(f.mul(a, b), f.mul(a, c)));
                    }
                }
            }
        }
    }

    #[test]
    fn a_prime_field_counts_modulo_the_prime() {
        let f = Field::new(101).unwrap();
        for a in 0..101 {
            for b in 0..101 {
                assert_eq!(f.add(a, b), (a + b) % 101);
                assert_eq!(f.mul(a, b), a * b % 101);
            }
        }
    }
}
